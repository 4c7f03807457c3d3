"""The fastest minute of a volume's last day."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.disks.fill_ceiling import DAY_SECONDS, WINDOW_SECONDS, FastestMinute
from kquota.policy.fill import MAX_GAP_SECONDS

CAPACITY = 10**12

looks = st.lists(st.tuples(st.integers(0, CAPACITY), st.floats(2.0, WINDOW_SECONDS)), min_size=1, max_size=40)


def seen(*consumed: int, step: float = 20.0) -> FastestMinute:
    minute = FastestMinute.begin(CAPACITY, consumed[0], 0.0)
    for number, bytes_now in enumerate(consumed[1:], 1):
        minute = minute.after(CAPACITY, bytes_now, number * step)
    return minute


def test_the_growth_of_the_fastest_minute_counts_not_the_mean() -> None:
    assert seen(0, 0, 0, 6_000_000, 6_000_000, 6_000_000, 6_000_000).bytes_per_second == 100_000


def test_a_deletion_does_not_hide_the_growth_after_it() -> None:
    assert seen(10**9, 0, 6_000_000, 12_000_000).bytes_per_second == 200_000


def test_a_volume_that_never_grew_has_no_rate() -> None:
    assert seen(5, 5, 4, 3).bytes_per_second == 0


def test_a_rate_is_rounded_up() -> None:
    assert seen(0, 1).bytes_per_second == 1


def test_a_rate_counts_for_a_day() -> None:
    minute = seen(0, 6_000_000)
    at = 20.0
    while at < DAY_SECONDS:
        assert minute.bytes_per_second == 100_000
        at += WINDOW_SECONDS
        minute = minute.after(CAPACITY, 6_000_000, at)
    for hours in (0.5, 1.5):
        minute = minute.after(CAPACITY, 6_000_000, DAY_SECONDS + hours * 3600)
    assert minute.bytes_per_second == 0


def test_the_rate_of_an_earlier_agent_counts_on() -> None:
    minute = FastestMinute.begin(CAPACITY, 0, 0.0).recalling(777)
    assert minute.bytes_per_second == 777
    assert minute.after(CAPACITY, 60, 30.0).bytes_per_second == 777
    assert minute.after(CAPACITY, 60_000, 30.0).bytes_per_second == 1000
    assert minute.recalling(5).bytes_per_second == 777
    assert minute.after(CAPACITY, 60, DAY_SECONDS + 4000).bytes_per_second == 0


def test_a_rate_counts_from_the_hour_in_which_it_was_seen() -> None:
    """Not from the time since the start, nor from that of its begin."""
    late = 30.5 * 3600
    minute = FastestMinute.begin(CAPACITY, 10**9, late).recalling(777)
    assert [hour for hour, _ in minute.hours] == [30]
    grown = minute.after(CAPACITY, 10**9 + 60_000, late + 3600 - MAX_GAP_SECONDS)
    assert [hour for hour, _ in grown.hours] == [30, 31]
    last = FastestMinute.begin(CAPACITY, 0, 0.0).recalling(777).after(CAPACITY, 0, DAY_SECONDS + 3599)
    assert last.bytes_per_second == 777, "the oldest hour counts until its end"


def test_a_sample_counts_for_exactly_a_minute() -> None:
    minute = seen(0, 6_000, step=WINDOW_SECONDS)
    assert minute.samples == ((0.0, 0), (WINDOW_SECONDS, 6_000))
    assert minute.after(CAPACITY, 6_000, WINDOW_SECONDS + 2).samples[0] == (WINDOW_SECONDS, 6_000)


def test_growth_across_a_short_gap_counts_as_one_minute_and_across_a_long_one_not() -> None:
    minute = FastestMinute.begin(CAPACITY, 0, 0.0)
    assert minute.after(CAPACITY, 6_000, MAX_GAP_SECONDS).bytes_per_second == 100
    assert minute.after(CAPACITY, 6_000, MAX_GAP_SECONDS + 1).bytes_per_second == 0


def test_another_size_keeps_the_rate_and_begins_another_minute() -> None:
    minute = seen(0, 6_000).after(2 * CAPACITY, 10**9, 40.0)
    assert minute.bytes_per_second == 100
    assert minute.after(2 * CAPACITY, 10**9 + 12_000, 60.0).bytes_per_second == 200


@pytest.mark.parametrize("step", [0.0, 0.2, 1.9])
def test_a_look_soon_after_the_last_changes_nothing(step: float) -> None:
    minute = seen(0, 0)
    assert minute.after(CAPACITY, 10**9, 20.0 + step) is minute


@given(looks)
def test_no_growth_within_a_minute_was_faster(changes: list[tuple[int, float]]) -> None:
    at, minute, samples = 0.0, FastestMinute.begin(CAPACITY, 0, 0.0), [(0.0, 0)]
    for consumed, seconds in changes:
        at += seconds
        minute = minute.after(CAPACITY, consumed, at)
        samples.append((at, consumed))
        assert len(minute.samples) <= 32
    ceiling = minute.bytes_per_second * WINDOW_SECONDS
    for i, (begun, low) in enumerate(samples):
        for ended, high in samples[i:]:
            if ended - begun <= WINDOW_SECONDS:
                assert high - low <= ceiling
