"""JSON of files on this machine, read into dataclasses."""

from __future__ import annotations

from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from kquota.formats.strict_json import InvalidJson

T = TypeVar("T")

# pydantic's own words are for programmers.
_WORDS = {
    "missing": "is missing",
    "dataclass_type": "is no object",
    "dict_type": "is no object",
    "float_type": "is no number",
    "int_type": "is no integer",
    "mapping_type": "is no object",
    "string_type": "is no text",
    "tuple_type": "is no list",
}


class MalformedDocument(InvalidJson):
    """JSON of another shape than its reader expects; the text names the field."""


def read_as(adapter: TypeAdapter[T], document: object) -> T:
    """Return a parsed document as the adapter's dataclass; unknown fields are ignored.

    Raises:
        MalformedDocument: a field is missing, or has a value that is not allowed.
    """
    try:
        return adapter.validate_python(document)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in wrong["loc"]) or "the document"
        words = _WORDS.get(wrong["type"])
        text = f" {words}" if words else f": {wrong['msg'].removeprefix('Value error, ')}"
        raise MalformedDocument(f"{field}{text}") from None
