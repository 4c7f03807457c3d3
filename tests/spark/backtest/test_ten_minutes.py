"""Ten minutes of volumes: the closed loop on them is the one on all samples, and reads no others."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from kquota.core.decision import FallbackAction, Scope
from kquota_pipeline.backtest.events import with_named_topics
from kquota_pipeline.backtest.job import closed_loop
from kquota_pipeline.backtest.policy import Limits, Policy
from kquota_pipeline.backtest.stage import samples
from kquota_pipeline.backtest.ten_minutes import STEP_SECONDS, ten_minute_rows
from kquota_pipeline.tables import CLIENTS, DECISIONS, OPERATORS, TEN_MINUTES, USAGE
from tests.spark.rows import rows

MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)
BEGIN, END = -3 * 3600, 3 * 3600
NAMES = ("orders", "payments", "audit")
POLICIES = (
    Policy("in force"),
    Policy("others", limits=Limits()),
    Policy("by volume", scope=Scope.VOLUME),
    Policy("bounded", fallback_action=FallbackAction.BOUNDED, scope=Scope.VOLUME),
)
Sample = dict[str, object]


def made_samples() -> list[Sample]:
    """Return the samples of three brokers around a midnight: outages, agents that start again, disks that are
    replaced, fail, are offline or cross their limits, other limits, and topics that are named once.
    """
    lots = random.Random(20261120)
    return [one for broker in (1, 2, 3) for one in of_broker(lots, broker)]


def of_broker(lots: random.Random, broker: int) -> Iterator[Sample]:
    disks: list[Sample] = [
        {"volume_name": name, "volume_id": f"{broker}-{name}", "mount_point": f"/data/{name}", "role": role}
        | {"capacity_bytes": 1_000_000, "status": "ok", "hard_limit_level": 5.0, "soft_limit_level": 15.0}
        for name, role in (("sda", "data"), ("sdb", "data"), ("meta", "metadata"))
    ]
    consumed = [780_000.0, 500_000.0, 10.0]
    named: dict[object, int] = {}
    second, sequence, instance = BEGIN, 0, 0
    while second <= END:
        at = MIDNIGHT + timedelta(seconds=second)
        for place, disk in enumerate(disks):
            consumed[place] = min(999_000.0, max(5_000.0, consumed[place] + lots.gauss(250, 2_500)))
            changed(lots, disk, broker)
            one = {"cluster_id": "C", "broker_id": broker, "instance_id": f"{broker}-{instance}"}
            one |= {"sequence": sequence, "at": at, "day": at.date(), **disk}
            one |= {f"{kind}_limit_type": "MinFreePercentage" for kind in ("hard", "soft")}
            one |= {
                "consumed_bytes": int(consumed[place]),
                "fill_ceiling_bytes_per_second": lots.choice((3, None)),
            }
            if consumed[place] > 850_000:
                key = (instance, disk["volume_name"])
                if key in named and lots.random() < 0.95:
                    one["topics_sequence"] = named[key]
                else:
                    named[key] = sequence
                    one["topics"] = sorted(lots.sample(NAMES, 2))
            yield one
        sequence += 1
        # Now and then a sample is at the end of ten minutes, to the microsecond.
        second += lots.choice((30, 30, 30, 31, 29)) if lots.random() < 0.9 else 30 - second % 30
        if lots.random() < 0.006:
            second, instance, sequence = second + lots.randrange(300, 3_000), instance + 1, 0
    assert named


def changed(lots: random.Random, disk: Sample, broker: int) -> None:
    """Let something happen to a disk, seldom; most of it ends soon."""
    if disk["status"] != "ok" and lots.random() < 0.3:
        disk["status"] = "ok"
    event = lots.random()
    if event < 0.01:
        disk["status"] = lots.choice(("failed", "offline"))
    elif event < 0.012:
        disk["volume_id"] = lots.choice((None, f"{broker}-new-{lots.random()}"))
    elif event < 0.014:
        disk["soft_limit_level"] = lots.choice((10.0, 15.0, 20.0))
    elif event < 0.015:
        disk["mount_point"] = lots.choice((None, "/data/elsewhere"))
    elif event < 0.016:
        disk["capacity_bytes"] = lots.choice((1_000_000, 1_100_000))


@pytest.fixture(scope="module")
def given() -> list[Sample]:
    return made_samples()


def by_day(usage: DataFrame) -> DataFrame:
    """Return the ten minutes of samples, each day made without the other."""
    first, second = (usage.where(F.col("day") == day) for day in (MIDNIGHT - timedelta(1), MIDNIGHT))
    return ten_minute_rows(first).unionByName(ten_minute_rows(second))


def envelope(broker: int, second: int, **fields: object) -> Sample:
    at = MIDNIGHT + timedelta(seconds=second)
    return {"cluster_id": "C", "broker_id": broker, "instance_id": "a", "sequence": second - BEGIN, "at": at,
            "day": at.date(), **fields}  # fmt: skip


def others(spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Return decisions, clients and operators of the same time."""
    decisions = [
        envelope(1, second, state="OPEN", mode="enforce", undetermined=[], covered=[3] if second % 7 else [])
        for second in range(BEGIN, END, 1_111)
    ]
    clients = [
        envelope(broker, second, window_seconds=300.0, user="CN=app", client_id="etl", omitted_clients=0)
        | {"produce_bytes_per_second": 40.0, "throttled_seconds": 0.0, "topics": ["orders"]}
        for second in range(BEGIN, END, 300)
        for broker in (1, 2)
    ]
    orders = [envelope(1, 7_000, order_kind="decommission", subject_broker_id=2)]
    return rows(spark, DECISIONS, decisions), rows(spark, CLIENTS, clients), rows(spark, OPERATORS, orders)


def test_the_closed_loop_on_ten_minutes_is_the_one_on_all_samples(
    spark: SparkSession, given: list[Sample]
) -> None:
    usage = rows(spark, USAGE, given).cache()
    made = by_day(usage).cache()
    assert {field.name: field.dataType for field in made.schema} == {
        field.name: field.dataType for field in TEN_MINUTES.schema
    }
    assert made.count() < 0.2 * usage.count(), "most have one row, and names of topics come seldom"
    wide = with_named_topics(usage), with_named_topics(made)
    for tick_seconds in (STEP_SECONDS, 3 * STEP_SECONDS):
        of_all, of_made = (samples(one, tick_seconds, ceilings=True, topics=True) for one in wide)
        assertDataFrameEqual(of_made, of_all)
    # Two clusters with the same story: one task each, at the same time.
    both = usage.unionByName(made.withColumn("cluster_id", F.lit("M")), allowMissingColumns=True)
    others_of_both = (one.unionByName(one.withColumn("cluster_id", F.lit("M"))) for one in others(spark))
    course = closed_loop(both, *others_of_both, POLICIES).toPandas()
    of_samples, of_made = (
        course[course["cluster_id"] == name].drop(columns="cluster_id").reset_index(drop=True)
        for name in "CM"
    )
    assert len(of_samples) == len(POLICIES) * (END - BEGIN) // STEP_SECONDS + len(POLICIES)
    assert of_made.equals(of_samples)
    in_force = of_samples[of_samples["policy"] == "in force"]
    assert {0 < factor < 1 for factor in in_force["factor"]} == {True, False}
    assert of_samples.groupby("policy")["factor"].min().eq(0).all()
    assert of_samples["undetermined"].max() > 0
