"""The figures taken from samples of landed data."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.landed import Landed, Sample


def landed(seconds: float, *bytes_at: Callable[[float], float], lag_seconds: float = 0.0) -> Landed:
    """Samples ten times a second of connections whose bytes are functions of time."""
    samples = []
    for tenth in range(round(seconds * 10) + 1):
        at = tenth / 10
        samples.append(Sample(at, at + lag_seconds, tuple(int(of(at)) for of in bytes_at)))
    return Landed(samples)


def steady(rate: float) -> Callable[[float], float]:
    return lambda at: at * rate


def paused(rate: float, start: float, end: float) -> Callable[[float], float]:
    return lambda at: rate * (min(at, start) + max(at - end, 0.0))


def test_bytes_are_counted_by_connection_and_together():
    both = landed(10, steady(1000), steady(3000))
    assert both.bytes_by_connection(2, 4) == (2000, 6000)
    assert both.bytes(2, 4) == 8000
    assert both.rate(2, 4) == pytest.approx(4000)
    assert both.rates_by_connection(2, 4) == pytest.approx((1000, 3000))


def test_a_sample_that_straddles_a_bound_is_left_out_and_what_was_known_by_a_moment_counts():
    slow = landed(10, steady(1000), lag_seconds=0.3)
    inside = slow.between(2, 4)
    assert inside[0].asked_at >= 2
    assert inside[-1].answered_at <= 4
    assert slow.bytes(2, 4) < 2000
    assert [slow.until(at) for at in (-1, 2.05, 99)] == [0, 1700, 10_000]


def test_what_was_not_sampled_is_an_error_and_not_zero():
    with pytest.raises(ValueError, match=r"^1 samples in 0\.1 s"):
        landed(10, steady(1000)).bytes(3.95, 4.05)


@pytest.mark.parametrize(
    ("connections", "seconds"),
    [((steady(1000), paused(1000, 2, 5)), 3.1), ((steady(1000),), 0.1), ((paused(1000, 4, 99),), 5)],
    ids=["the worst connection's", "none but of samples", "to the end"],
)
def test_the_longest_silence(connections, seconds):
    assert landed(10, *connections).longest_silence_seconds(1, 9) == pytest.approx(seconds, abs=0.11)


def test_settled_is_when_the_following_five_seconds_are_near_the_target():
    # 1000 B/s until 4, then 500.
    falling = landed(20, lambda at: 1000 * min(at, 4) + 500 * max(at - 4, 0))
    # A mean of five seconds is 600 when one of them is still at 1000.
    assert falling.settled_seconds(2, 20, 500) == pytest.approx(1, abs=0.11)
    assert falling.settled_seconds(2, 20, 50) is None


def test_a_client_is_back_when_bytes_land_at_half_its_rate_again_and_not_by_a_trickle():
    after = landed(20, paused(1000, 5, 12), paused(1000, 5, 14.5))
    assert after.resumed_seconds(10, 20, (1000, 1000)) == pytest.approx([2.1, 4.6], abs=0.11)
    trickle = landed(20, lambda at: 1000 * min(at, 5) + 100 * max(at - 5, 0))
    assert trickle.resumed_seconds(10, 20, (1000,)) == [None]
