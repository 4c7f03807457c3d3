"""The golden samples of schemas/ and the JSON Schemas they belong to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

SCHEMAS = Path(__file__).parents[3] / "schemas"
SAMPLES = SCHEMAS / "samples"


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample: a whole file, or a variant of a valid one."""

    name: str
    text: str

    @property
    def document(self) -> dict[str, Any]:
        """The sample as it is parsed, for valid ones."""
        return dict(json.loads(self.text))


def samples(kind: str, verdict: str) -> list[Sample]:
    """Return the samples of one kind, ``valid``, ``invalid`` or ``beyond``; there must be some."""
    found = sorted(_samples(kind, verdict), key=lambda one: one.name)
    assert found, f"no {verdict} samples of {kind}"
    names = [one.name for one in found]
    assert len(set(names)) == len(names), f"a {verdict} sample of {kind} is there twice"
    return found


def sample(kind: str, name: str) -> dict[str, Any]:
    """Return a valid sample, to be changed as the caller likes."""
    (found,) = (one for one in samples(kind, "valid") if one.name == name)
    return found.document


def each(kind: str, verdict: str) -> pytest.MarkDecorator:
    """Run a test with each sample of one kind as ``golden``."""
    return pytest.mark.parametrize("golden", samples(kind, verdict), ids=lambda one: one.name)


def _samples(kind: str, verdict: str) -> Iterator[Sample]:
    for path in (SAMPLES / kind / verdict).glob("*.json"):
        yield Sample(path.stem, path.read_text("utf-8"))
    variants = json.loads((SAMPLES / kind / "variants.json").read_text("utf-8"))
    for name, variant in variants.get(verdict, {}).items():
        yield Sample(name, variant["text"] if "text" in variant else json.dumps(_varied(kind, variant)))


def _varied(kind: str, variant: dict[str, Any]) -> object:
    assert variant.keys() <= {"of", "set", "remove"}, variant
    document = json.loads((SAMPLES / kind / "valid" / f"{variant['of']}.json").read_text("utf-8"))
    for pointer, value in variant.get("set", {}).items():
        place, key = _place(document, pointer)
        place[key] = deepcopy(value)
    for pointer in variant.get("remove", ()):
        place, key = _place(document, pointer)
        del place[key]
    return document


def _place(document: Any, pointer: str) -> tuple[Any, Any]:
    """Return what holds the value at a JSON pointer, and its key or number there."""
    _, *parents, last = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/"))
    for part in parents:
        document = document[int(part) if isinstance(document, list) else part]
    return document, int(last) if isinstance(document, list) else last


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


@cache
def replays() -> dict[str, dict[str, Any]]:
    """Return the situations by name: ``arguments``, ``records``, and the ``decision`` that must come out."""
    found: dict[str, dict[str, Any]] = json.loads((SAMPLES / "replays.json").read_text("utf-8"))
    assert len(found) > 20
    return found
