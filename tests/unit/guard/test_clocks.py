"""The clocks of a cycle, and a wall clock that is set."""

from __future__ import annotations

import time

import pytest

from kquota.guard.inputs import JumpDetector, Moment
from kquota.host.boot_clock import BootClock
from tests.unit.guard.cycles import moment


def test_the_clocks_are_read_together() -> None:
    before = time.monotonic()
    now = Moment.now(BootClock())
    assert before <= now.monotonic_seconds <= time.monotonic()
    assert abs(now.wall.timestamp() - time.time()) < 5
    assert now.wall.tzinfo is not None
    assert now.boot.uptime_ms <= time.clock_gettime_ns(time.CLOCK_BOOTTIME) / 1e6


@pytest.mark.accepts("F8")
def test_a_wall_clock_that_was_set_is_noticed_once_and_a_slew_is_not() -> None:
    detector = JumpDetector(tolerance_seconds=5)
    assert detector.jump_seconds(moment(0)) == 0
    assert detector.jump_seconds(moment(60, wall_offset_seconds=1)) == 0
    assert detector.jump_seconds(moment(61, wall_offset_seconds=3601)) == pytest.approx(3600)
    assert detector.jump_seconds(moment(62, wall_offset_seconds=3601)) == 0
    assert detector.jump_seconds(moment(63, wall_offset_seconds=0)) == pytest.approx(-3601)
