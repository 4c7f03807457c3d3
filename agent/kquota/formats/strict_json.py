"""JSON from strangers: exact numbers, bounded size, one kind of error."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal

MAX_VALUE_BYTES = 1024 * 1024
MAX_TEXT = 1024  # characters of any text that is shown to people


class InvalidJson(ValueError):
    """Bytes that are no JSON document we are willing to read."""


@dataclass(frozen=True, slots=True)
class ParsedJson:
    """A document that was part of a larger one and is parsed already, by :func:`parse_json`."""

    document: object


def _refuse_constant(name: str) -> object:
    raise InvalidJson(f"{name} is not JSON")


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise InvalidJson("an object has the same key twice")
    return document


# made once: building a decoder costs as much as reading a small message
_DECODER = json.JSONDecoder(
    parse_float=Decimal, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys
)


def parse_json(raw: bytes | str | ParsedJson, max_bytes: int = MAX_VALUE_BYTES) -> object:
    """Read one JSON document; numbers with a fraction or exponent become exact ``Decimal``.

    Raises:
        InvalidJson: too large, not UTF-8, not JSON (NaN and Infinity included), the same key twice in
            an object, or nested too deeply.
    """
    if isinstance(raw, ParsedJson):
        return raw.document
    if len(raw) > max_bytes:
        raise InvalidJson(f"{len(raw)} bytes are more than the {max_bytes} allowed")
    try:
        text = raw.decode("utf-8") if isinstance(raw, bytes) else raw
        document: object = _DECODER.decode(text)
    except InvalidJson:
        raise
    except RecursionError:
        raise InvalidJson("nested too deeply") from None
    except (ValueError, ArithmeticError) as error:  # ArithmeticError: a Decimal exponent out of all range
        raise InvalidJson(str(error)[:200]) from None
    return document


def printable(text: str) -> str:
    """Return a stranger's text fit for a terminal and a log: bounded, nothing but printable characters."""
    if len(text) <= MAX_TEXT and text.isprintable():
        return text
    text = text[:MAX_TEXT]
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
