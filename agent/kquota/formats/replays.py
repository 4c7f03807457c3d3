"""The records of a replay, for ``kquota decide``.

In offset order, one JSON object a line; a JSON null is a tombstone, and a text the value as it stood in the
topic. The timestamp is when the topic stored the record, 0 or none where that is not known:

    {"key": "1", "timestamp_ms": 0, "value": {…} | null | "raw text"}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kquota.formats.records import read_event
from kquota.formats.strict_json import InvalidJson, ParsedJson, parse_json
from kquota.policy.events import Event

_MAX_LINE_BYTES = 8 * 1024 * 1024


class InvalidReplay(ValueError):
    """A line of the file that is no record; the text names the line."""


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """Yield the event of each line; empty lines are skipped.

    Raises:
        InvalidReplay: a line that is not of the form above.
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield read_event(*_record(number, line))


def _record(number: int, line: str) -> tuple[str, str | ParsedJson | None, int | None]:
    try:
        entry = parse_json(line, _MAX_LINE_BYTES)
    except InvalidJson as error:
        raise InvalidReplay(f"line {number}: not JSON: {error}") from None
    if not isinstance(entry, dict) or "value" not in entry or not isinstance(entry.get("key"), str):
        raise InvalidReplay(f'line {number}: must be an object with "key" (a text) and "value"')
    value, appended_ms = entry["value"], entry.get("timestamp_ms")
    return (
        entry["key"],
        value if value is None or isinstance(value, str) else ParsedJson(value),
        # No record was stored in 1970: a report would count as old as that.
        appended_ms if type(appended_ms) is int and appended_ms > 0 else None,
    )
