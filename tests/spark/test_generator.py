"""Generated histories: the same seed gives the same cluster, and limits are really crossed."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pyarrow.compute as pc
import pytest

from kquota_pipeline.generator.fleet import FleetSize, InvalidFleet, make_fleet
from kquota_pipeline.generator.history import rows_of
from kquota_pipeline.generator.world import live
from kquota_pipeline.tables import OPERATORS

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


def test_rows_of_a_table_come_in_the_order_of_time() -> None:
    """A task that writes rows of every day makes a file for each of them."""
    hours = pd.date_range("2026-10-01", periods=60, freq="h")
    of_brokers = [pd.DataFrame({"broker_id": broker, "at": hours, "day": hours.date}) for broker in (2, 1)]
    rows = rows_of(of_brokers, OPERATORS.schema)
    assert rows.schema.names == OPERATORS.schema.names
    assert rows["at"].to_pylist() == [
        hour for hour in hours.tz_localize("UTC").to_pydatetime() for _ in range(2)
    ]
    assert rows["broker_id"].to_pylist() == [2, 1] * 60, "those of one time keep their order"
    assert pc.all(pc.is_null(rows["reason"])).as_py(), "what is not given is null"
