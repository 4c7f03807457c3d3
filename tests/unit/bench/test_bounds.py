"""The formulas over the measured figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.bounds import leak_aim_bytes, leak_bound_bytes, pause_mute_seconds
from bench.figures import Case
from bench.loads import Client
from bench.overshoot import fastest_fill
from tests.unit.bench.measurements import GOVERNOR


def test_the_leak_grows_with_connections_and_with_the_length_of_the_pause():
    slow = replace(GOVERNOR, rate_before=5e6)
    assert leak_aim_bytes(slow) == pytest.approx(2 * 2**20 * (2 + 2 * 0.9162907) + 2**20)
    many = replace(slow, case=Case("governor", Client.LIBRDKAFKA, 20))
    assert leak_aim_bytes(many) == pytest.approx(2 * 20e6 * (2 + 2 * 0.9162907) + 2**20)
    half_a_minute = leak_aim_bytes(replace(slow, seconds=30))
    assert half_a_minute == pytest.approx(2 * 2**20 * (2 + 2 * 2.302585 + 1) + 2**20)


def test_what_came_between_two_looks_before_the_pause_is_a_surprise():
    fast = replace(GOVERNOR, rate_before=200e6)
    assert leak_aim_bytes(fast) == pytest.approx(2 * 20e6 * (2 + 2 * 0.9162907) + 20e6)


def test_the_leak_that_limits_are_sized_by_grows_with_the_pause():
    assert leak_bound_bytes(1e6, 0, 10) == 15e6
    assert leak_bound_bytes(1e6, 3600, 10) == 735e6


def test_the_longest_mute_is_half_the_pause_within_bounds():
    assert [pause_mute_seconds(seconds) for seconds in (1, 5, 30)] == [1.0, 2.5, 10.0]


def test_the_fastest_fill_is_the_best_second_before_the_breach():
    slow = [(at / 10, at * 100_000) for at in range(31)]  # 1 MB/s for three seconds
    quick = [(3 + at / 10, 3_000_000 + at * 500_000) for at in range(1, 31)]  # then 5 MB/s
    assert fastest_fill([*slow, *quick], 3.0) == pytest.approx(1e6)
    assert fastest_fill([*slow, *quick], 6.0) == pytest.approx(5e6)
    assert fastest_fill(slow[:5], 3.0) == 0.0
