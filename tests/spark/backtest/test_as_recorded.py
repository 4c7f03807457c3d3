"""The policy in force, back-tested on its own history, gives what happened; and where it does not, why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import typer
from pyspark.sql import SparkSession

from kquota_pipeline.backtest.as_recorded import (
    MOST_DIFFERENT,
    MOST_DIFFERENT_BYTES,
    comparison,
    differences,
    spans,
)
from kquota_pipeline.backtest.job import CLOSED_LOOP, closed_loop
from kquota_pipeline.backtest.policy import Policy
from kquota_pipeline.backtest.stage import production
from kquota_pipeline.cli.analysis import check_tick
from kquota_pipeline.history import History
from kquota_pipeline.tables import CLIENTS, DECISIONS, OPERATORS, USAGE, Table
from tests.spark.backtest.recorded import recorded_history
from tests.spark.rows import rows

START = datetime(2026, 11, 1, tzinfo=UTC)
TICK_SECONDS = 600
_COURSE = Table("course", "", tuple((f.name, f.dataType, "") for f in CLOSED_LOOP), (), ())


def envelope(broker_id: int, tick: float, **fields: object) -> dict[str, object]:
    """The beginning of a record at the end of a tick."""
    at = START + timedelta(seconds=TICK_SECONDS * tick)
    given = {"cluster_id": "C", "broker_id": broker_id, "instance_id": "a", "at": at, "day": at.date()}
    return {**given, "sequence": int(10 * tick), **fields}


@pytest.mark.accepts("G24")
def test_the_policy_in_force_gives_the_states_that_real_agents_recorded(spark: SparkSession) -> None:
    """Three brokers with agents and the fence; THROTTLE twice, PAUSE, OPEN: see record.py."""
    history = recorded_history(spark)
    usage, decisions, clients, operators = history
    course = closed_loop(usage, decisions, clients, operators, [Policy("in force")], 5, 2.0)
    ticks = differences(course, usage, decisions, clients, operators, 5).cache()
    (found,) = comparison(ticks, 5).collect()
    assert found.different_ratio <= MOST_DIFFERENT, found
    assert abs(found.held_ratio - 1) <= MOST_DIFFERENT_BYTES, found
    assert found.reproduces
    assert (
        min(found.recorded_open_seconds, found.recorded_throttle_seconds, found.recorded_pause_seconds) > 50
    )
    ticks.unpersist()


def test_each_tick_that_differs_has_a_cause(spark: SparkSession) -> None:
    recorded: Sequence[Mapping[str, Any]] = [
        {"state": "OPEN"},  # the simulation alone
        {"state": "OPEN"},
        {"state": "PAUSE"},  # has just changed
        {"state": "PAUSE"},
        {"state": "OPEN", "undetermined": [{"broker_id": 2, "cause": "stale"}]},
        {"state": "OPEN"},  # maintenance
        {"state": "PAUSE", "hold": {"action": "pause", "until": None, "reason": "", "actor": ""}},
        {"state": "OPEN"},  # after it
        {"state": "OPEN", "mode": "observe"},
        {"state": "OPEN"},  # without usage
    ]
    expected = ["simulation", "", "within the tick", "", "undetermined", "maintenance", "hold", "aftermath",
                "observe", "gap"]  # fmt: skip
    simulated = [0.5, 1.0, 1.0, 0.0, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0]
    count = len(recorded)
    decisions = [
        envelope(1, tick, mode="enforce", fallback=False) | dict(given)
        for tick, given in enumerate(recorded, 1)
    ]
    usage = [envelope(1, tick) for tick in range(1, count)]
    until = START + timedelta(seconds=TICK_SECONDS * 6)
    order = envelope(1, 5.5, order_kind="maintenance", subject_broker_id=2, withdrawn=False, until=until)
    course = [
        {"policy": "p", "cluster_id": "C", "factor": factor, "held_bytes": 30.0}
        | {"tick": int(START.timestamp()) + TICK_SECONDS * tick}
        for tick, factor in enumerate(simulated, 1)
    ]
    client = envelope(1, 3, window_seconds=60.0, baseline_bytes_per_second=10.0, produce_bytes_per_second=5.0)
    given = (
        rows(spark, USAGE, usage),
        rows(spark, DECISIONS, decisions),
        rows(spark, CLIENTS, [client]),
        rows(spark, OPERATORS, [order]),
    )
    ticks = differences(rows(spark, _COURSE, course), *given, TICK_SECONDS).cache()
    assert [row.cause or "" for row in ticks.orderBy("tick").collect()] == expected
    (found,) = comparison(ticks, TICK_SECONDS).collect()
    assert found.different_ratio == pytest.approx(0.8)
    assert (found.gap_seconds, found.within_the_tick_seconds) == (600, 600)
    assert (found.held_bytes, found.recorded_held_bytes, found.held_ratio) == (300.0, 300.0, 1.0)
    assert not found.reproduces
    assert found.sentence.startswith("States differ in 80.0 % of the time, most often by cause: ")
    first = spans(ticks, TICK_SECONDS).orderBy("from_at").collect()[0]
    assert (first.state, first.recorded_state, first.cause) == ("THROTTLE", "OPEN", "simulation")
    assert first.from_at.astimezone(UTC) == START
    ticks.unpersist()


def test_what_producers_would_have_sent_behind_a_fence_is_their_rate_before(spark: SparkSession) -> None:
    def client(tick: float, rate: float, **fields: object) -> dict[str, object]:
        return envelope(1, tick, window_seconds=300.0, produce_bytes_per_second=rate, **fields)

    clients = [client(0.5, 10.0), client(1, 20.0), client(1.5, 0.0), client(2.25, 0.0), client(4, 30.0)]
    states = {0: "OPEN", 1.02: "PAUSE", 3: "OPEN"}
    decisions = [envelope(1, tick, state=state, mode="enforce") for tick, state in states.items()]
    found = {
        (row.tick - int(START.timestamp())) // TICK_SECONDS: (row.produced_bytes, row.offered_bytes)
        for row in production(
            rows(spark, CLIENTS, clients), rows(spark, DECISIONS, decisions), TICK_SECONDS
        ).collect()
    }
    # The window that ends in the third tick is half in the second.
    assert found == {1: (9_000, 9_000), 2: (0, 6_750), 3: (0, 2_250), 4: (9_000, 9_000)}


def test_a_step_that_is_shorter_than_the_records_is_refused(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    clients = rows(spark, CLIENTS, [envelope(1, tick, window_seconds=30.0) for tick in (1, 2, 3)])
    history = History(clients, clients, clients, clients)
    check_tick(history, 30)
    with pytest.raises(typer.Exit):
        check_tick(history, 20)
    assert "--tick-seconds 20: a step must not be shorter than the windows" in capsys.readouterr().err
    check_tick(History(clients, clients, clients.limit(0), clients), 5)
