"""Points in time: ISO 8601 with an offset, read the same on every supported Python."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kquota.policy.timestamps import InvalidTimestamp, format_utc, parse_utc

MOMENT = datetime(2026, 11, 20, 10, 15, 30, tzinfo=UTC)


@pytest.mark.accepts("A22")
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-20T10:15:30Z", MOMENT),
        ("2026-11-20T10:15Z", MOMENT.replace(second=0)),
        ("2026-11-20T10:15:30.1Z", MOMENT.replace(microsecond=100_000)),
        ("2026-11-20T10:15:30,1Z", MOMENT.replace(microsecond=100_000)),
        ("2026-11-20T10:15:30.123456789Z", MOMENT.replace(microsecond=123_456)),
        ("2026-11-20T10:15:30+00:00", MOMENT),
        ("2026-11-20T11:15:30+01", MOMENT),
        ("2026-11-20T05:45:30-0430", MOMENT),
        ("0001-01-01T00:00:00Z", datetime.min.replace(tzinfo=UTC)),
    ],
)
def test_a_point_in_time_is_read_and_converted_to_utc(text: str, moment: datetime) -> None:
    assert parse_utc(text) == moment
    assert parse_utc(text).tzinfo is UTC


@pytest.mark.accepts("A22", "F5")
@pytest.mark.parametrize(
    "text",
    [
        None,
        1795169730,
        [],
        "",
        "2026-11-20",
        "2026-11-20T10:15:30",
        "2026-11-20 10:15:30Z",
        "2026-11-20x10:15:30Z",
        "2026-11-20T10:15:30z",
        "20261120T101530Z",
        "2026-W47-5T10:15:30Z",
        "2026-11-31T10:15:30Z",
        "2026-11-20T24:00:00Z",
        "2026-11-20T10:15:60Z",
        "2026-11-20T10:15:30.Z",
        "2026-11-20T10:15:30.1234567890Z",
        "2026-11-20T10:15:30+00:00:00.5",
        "2026-11-20T10:15:30Z\n",
        "٢٠٢٦-11-20T10:15:30Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "2026-11-20T10:15:30Z" * 1000,
    ],
)
def test_anything_else_is_refused(text: object) -> None:
    with pytest.raises(InvalidTimestamp) as refused:
        parse_utc(text)
    assert len(str(refused.value)) < 200


def test_it_is_written_with_milliseconds_and_z() -> None:
    moment = MOMENT.replace(microsecond=123_999).astimezone(timezone(timedelta(hours=2)))
    assert format_utc(moment) == "2026-11-20T10:15:30.123Z"
