"""The golden samples of schemas/ and the JSON Schemas they belong to, for the tests of this folder."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

SCHEMAS = Path(__file__).parents[3] / "schemas"
SAMPLES = SCHEMAS / "samples"


def samples(kind: str, verdict: str) -> list[Path]:
    """Return the sample files of one kind, ``valid`` or ``invalid``; there must be some."""
    found = sorted((SAMPLES / kind / verdict).glob("*.json"))
    assert found, f"no {verdict} samples of {kind}"
    return found


@cache
def _registry() -> Registry:
    documents = [json.loads(path.read_text("utf-8")) for path in sorted(SCHEMAS.glob("*.schema.json"))]
    return Registry().with_resources(
        (document["$id"], Resource.from_contents(document)) for document in documents if "$id" in document
    )


@cache
def validator(kind: str, definition: str = "") -> Draft202012Validator:
    """Return the validator of ``schemas/<kind>.schema.json``, or of one of its definitions."""
    schema = json.loads((SCHEMAS / f"{kind}.schema.json").read_text("utf-8"))
    if definition:
        schema = {"$ref": f"{schema['$id']}#/$defs/{definition}"}
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, registry=_registry())


def complaints(kind: str, document: object, definition: str = "") -> list[str]:
    """Return what the schema has against a document."""
    return [error.message for error in validator(kind, definition).iter_errors(document)]


def refused_by_schema(kind: str, text: str, definition: str = "") -> bool:
    """Return whether the text is no JSON at all, or none that the schema allows."""
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return True
    return not validator(kind, definition).is_valid(document)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
