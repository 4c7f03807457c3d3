"""A burst that crosses soft and hard limit at full speed: how far past the hard limit the disk goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.bounds import overshoot_bound_bytes
from bench.overshoot import NO_ZONE_BYTES, burst
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB

Measured = Callable[[str, object], None]


@pytest.mark.long
@pytest.mark.accepts("F27")
@pytest.mark.parametrize("fence", [False, True], ids=["governor", "fence"])
def test_a_burst_at_full_speed_goes_no_farther_than_reaction_window_requests_and_leak(
    kafka_runtime: KafkaRuntime,
    callback_jar: Path,
    fence: bool,
    record_property: Measured,
) -> None:
    seen = burst(
        kafka_runtime,
        callback_jar,
        zone_bytes=NO_ZONE_BYTES,  # hardly a throttle zone: nothing slows the burst before it is stopped
        window_seconds=3,
        fence=fence,
        hard_bytes=192 * MIB,
        pause_seconds=8.0,
    )

    record_property("safe_seconds", seen.reaction_seconds)
    assert seen.reached
    assert seen.fill_rate > 0
    assert 0 <= seen.past_hard_bytes <= overshoot_bound_bytes(seen), seen
    # Had nothing been held, the same speed would have taken it farther.
    assert seen.past_hard_bytes < seen.fill_rate * seen.pause_seconds, seen
