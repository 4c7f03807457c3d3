"""Points in time as the messages and files write them: ISO 8601, UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

# Python's own reader takes more forms with every version; two agents must never read one differently.
_ISO_8601 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]{1,9})?)?"
    r"(?P<offset>Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?"
)
_EXAMPLE = "an ISO 8601 time in UTC such as 2026-11-20T10:15:30.123Z"


class InvalidTimestamp(ValueError):
    """Text that names no point in time, or one without its offset from UTC."""


def parse_utc(text: object) -> datetime:
    """Read an ISO 8601 point in time such as ``2026-11-20T10:15:30.123Z``, as an aware UTC datetime.

    Another offset than Z is converted. Text without one is refused: a local time of an unknown
    machine proves nothing about freshness. Seconds and up to 9 decimals are optional; digits finer than
    a microsecond are cut off.

    Raises:
        InvalidTimestamp: not such a text.
    """
    if not isinstance(text, str):
        raise InvalidTimestamp(f"must be a text, {_EXAMPLE}")
    match = _ISO_8601.fullmatch(text)
    if match is None:
        raise InvalidTimestamp(f"{text[:40]!r} is not {_EXAMPLE}")
    if match["offset"] is None:
        raise InvalidTimestamp(f"{text!r} lacks its offset from UTC (a Z at the end)")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):  # no such day, or out of the calendar
        raise InvalidTimestamp(f"{text!r} is not {_EXAMPLE}") from None


def from_epoch_ms(milliseconds: int | None) -> datetime | None:
    """Return the time that a record of a topic carries, None where it has none that can be written."""
    if milliseconds is None or milliseconds < 0:
        return None
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None


def format_utc(moment: datetime) -> str:
    """Write a point in time with milliseconds and Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
