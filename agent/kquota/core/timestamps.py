"""Points in time as the messages and files write them: ISO 8601, UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class InvalidTimestamp(ValueError):
    """Text that names no point in time, or one without its offset from UTC."""


def parse_utc(text: object) -> datetime:
    """Read an ISO 8601 point in time such as ``2026-11-20T10:15:30.123Z``, as an aware UTC datetime.

    Another offset than Z is converted. Text without one is refused: a local time of an unknown
    machine says nothing about freshness.

    Raises:
        InvalidTimestamp: not such a text.
    """
    if not isinstance(text, str) or not 16 <= len(text) <= 40:
        raise InvalidTimestamp(
            f"{str(text)[:40]!r} is not an ISO 8601 time in UTC such as 2026-11-20T10:15:30.123Z"
        )
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise InvalidTimestamp(f"{text!r} lacks its offset from UTC (a Z at the end)")
        return moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        if isinstance(error, InvalidTimestamp):
            raise
        raise InvalidTimestamp(
            f"{text!r} is not an ISO 8601 time in UTC such as 2026-11-20T10:15:30.123Z"
        ) from None


def format_utc(moment: datetime) -> str:
    """Write a point in time with milliseconds and Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(value: float) -> timedelta:
    """Return a duration of so many seconds."""
    return timedelta(seconds=value)
