"""Generated histories: the same seed gives the same cluster, and limits are really crossed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kquota_pipeline.generator.fleet import FleetSize, InvalidFleet, make_fleet
from kquota_pipeline.generator.world import live

SIZE = FleetSize(brokers=5, volumes_per_broker=2, days=16, interval_seconds=1800)


def test_the_same_seed_makes_the_same_cluster_and_limits_are_really_crossed() -> None:
    one, again = (live(make_fleet(SIZE)) for _ in range(2))
    assert (one.consumed_bytes == again.consumed_bytes).all()
    other = live(make_fleet(replace(SIZE, seed=8)))
    assert not (one.consumed_bytes == other.consumed_bytes).all()
    month = live(make_fleet(FleetSize(interval_seconds=1800)))
    assert ((month.factor > 0) & (month.factor < 1)).any()
    assert month.latched.any()
    with pytest.raises(InvalidFleet, match="brokers is 2; allowed are 3 to 200"):
        FleetSize(brokers=2)
