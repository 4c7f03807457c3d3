"""A document of another shape than expected is refused with the field."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import pytest
from pydantic import Field, PlainValidator, TypeAdapter

from kquota.host.documents import MalformedDocument, read_as
from kquota.policy.timestamps import parse_utc


@dataclass(frozen=True)
class Entry:
    name: str
    size: Annotated[float, Field(strict=True, ge=0)]


@dataclass(frozen=True)
class Document:
    entries: tuple[Entry, ...]
    count: Annotated[int, Field(strict=True)] = 0
    at: Annotated[object, PlainValidator(parse_utc)] = None
    more: dict[str, str] = field(default_factory=dict)


DOCUMENT = TypeAdapter(Document)


def test_a_document_is_read_and_unknown_fields_are_ignored() -> None:
    document = {"entries": [{"name": "a", "size": 1.5, "colour": "blue"}], "count": 2, "newer": True}
    assert read_as(DOCUMENT, document) == Document((Entry("a", 1.5),), 2)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ([], "the document is no object"),
        ({}, "entries is missing"),
        ({"entries": {}}, "entries is no list"),
        ({"entries": [7]}, "entries.0 is no object"),
        ({"entries": [{"name": 1, "size": 1}]}, "entries.0.name is no text"),
        ({"entries": [{"name": "a", "size": "1"}]}, "entries.0.size is no number"),
        ({"entries": [{"name": "a", "size": -1}]}, "entries.0.size: Input should be greater than"),
        ({"entries": [], "count": "1"}, "count is no integer"),
        ({"entries": [], "count": True}, "count is no integer"),
        ({"entries": [], "at": "then"}, "at: 'then' is not an ISO 8601 time"),
        ({"entries": [], "more": []}, "more is no object"),
    ],
)
def test_the_first_field_that_is_wrong_is_named(document: object, reason: str) -> None:
    with pytest.raises(MalformedDocument) as refused:
        read_as(DOCUMENT, document)
    assert str(refused.value).startswith(reason)
