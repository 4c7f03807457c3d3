"""The formulas over the measured figures."""

from __future__ import annotations

import pytest

from bench.overshoot import fastest_fill


def test_the_fastest_fill_is_the_best_second_before_the_breach():
    slow = [(at / 10, at * 100_000) for at in range(31)]  # 1 MB/s for three seconds
    quick = [(3 + at / 10, 3_000_000 + at * 500_000) for at in range(1, 31)]  # then 5 MB/s
    assert fastest_fill([*slow, *quick], 3.0) == pytest.approx(1e6)
    assert fastest_fill([*slow, *quick], 6.0) == pytest.approx(5e6)
    assert fastest_fill(slow[:5], 3.0) == 0.0
