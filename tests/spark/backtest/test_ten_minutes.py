"""Ten minutes of volumes: the closed loop on them is the one on all samples, and reads no others."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual
from typer.testing import CliRunner, Result

from kquota.policy.decision import FallbackAction, Scope
from kquota_pipeline import delta
from kquota_pipeline.backtest.events import with_named_topics
from kquota_pipeline.backtest.job import closed_loop
from kquota_pipeline.backtest.policy import Limits, Policy
from kquota_pipeline.backtest.stage import samples
from kquota_pipeline.backtest.ten_minutes import STEP_SECONDS, ten_minute_rows
from kquota_pipeline.cli.main import COMMANDS
from kquota_pipeline.cli.reader import history_of, reader
from kquota_pipeline.forecast.series import hourly
from kquota_pipeline.maintain.derived import HOUR_DAYS, TEN_MINUTE_DAYS, derive
from kquota_pipeline.recommend.limits import needs
from kquota_pipeline.tables import (
    CLIENTS,
    DECISIONS,
    HOURS,
    MAINTAINED,
    OPERATORS,
    TEN_MINUTES,
    USAGE,
    Tables,
)
from tests.spark.rows import rows

MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)
CLOSED, OPEN = (MIDNIGHT - timedelta(1)).date(), MIDNIGHT.date()
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
            one["applied_mechanism"] = "none" if lots.random() < 0.99 else "fence"
            one["log_dirs"] = [f"{disk['mount_point']}/kafka"]
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
    first, second = (usage.where(F.col("day") == day) for day in (CLOSED, OPEN))
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
    stored = [row.asDict() for row in made.collect()]
    assert len(stored) < 0.2 * len(given), "most have one row, and names of topics come seldom"
    by_identity = {tuple(one[name] for name in TEN_MINUTES.identity): one for one in given}
    for row in stored:
        one = by_identity[tuple(row[name] for name in TEN_MINUTES.identity)]
        same = set(row) - {"at", "first_at", "first_bytes", "fill_bytes_per_second", "samples"}
        assert {name: row[name] for name in same} == {name: one.get(name) for name in same}
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


def test_the_fastest_filling_is_the_one_between_two_samples(spark: SparkSession, given: list[Sample]) -> None:
    usage = rows(spark, USAGE, given).cache()
    found = {
        (row.broker_id, row.volume_name): row.fill_bytes_per_second
        for row in needs(hourly(usage), by_day(usage)).collect()
    }
    assert found == {
        (broker, name): pytest.approx(fastest([one for one in given if is_of(one, broker, name)]))
        for broker in (1, 2, 3)
        for name in ("sda", "sdb")
    }


def is_of(one: Sample, broker: int, name: str) -> bool:
    return (one["broker_id"], one["volume_name"], one["status"]) == (broker, name, "ok")


def fastest(own: list[Sample]) -> float:
    return max(
        (after["consumed_bytes"] - before["consumed_bytes"]) / (after["at"] - before["at"]).total_seconds()
        for before, after in pairwise(own)
        if before["volume_id"] == after["volume_id"]
    )


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, given: list[Sample]) -> Tables:
    """The history in tables; the first day is closed, the second is not."""
    place = Tables(f"file:{tmp_path_factory.mktemp('steps')}/tables")
    for table in (MAINTAINED, TEN_MINUTES, HOURS):
        delta.create(spark, place, table)
    stored = (rows(spark, USAGE, given), *others(spark))
    for frame, table in zip(stored, (USAGE, DECISIONS, CLIENTS, OPERATORS), strict=True):
        delta.create(spark, place, table)
        delta.append(frame, place, table)
    for derived in (TEN_MINUTE_DAYS, HOUR_DAYS):
        derive(spark, place, derived, {}, lambda day: day == CLOSED, MIDNIGHT)
    return place


def days_read(frame: DataFrame, table: str) -> set[str]:
    """Return the days whose files of a table the plan of a frame reads."""
    return {Path(name).parent.name for name in frame.inputFiles() if f"/{table}/" in name}


def test_no_sample_of_a_closed_day_is_read_in_steps_of_ten_minutes(tables: Tables) -> None:
    history = history_of(reader(tables.root, None, None), in_steps=True)
    closed, open_ = (f"day={day}" for day in (CLOSED, OPEN))
    for frame in (history.sampled(600), history.sampled(1800), history.by_ten_minutes):
        assert days_read(frame, "usage") == {open_}
        assert days_read(frame, "ten_minutes") == {closed}
    for frame in (history.sampled(60), history.usage):
        assert days_read(frame, "usage") == {closed, open_}


def test_on_a_day_that_is_not_derived_every_sample_is_a_step(tables: Tables, given: list[Sample]) -> None:
    history = history_of(reader(tables.root, None, None), in_steps=True)
    of_open_day = history.sampled(600).where(F.col("day") == OPEN)
    assert of_open_day.count() == sum(one["day"] == OPEN for one in given)
    closed = F.col("day") == CLOSED
    stored = history.by_ten_minutes.where(closed)
    assert history.sampled(600).where(closed).exceptAll(stored).isEmpty()
    of_all, of_steps = (
        samples(with_named_topics(one), STEP_SECONDS, ceilings=True, topics=True)
        for one in (history.usage, history.sampled(STEP_SECONDS))
    )
    assertDataFrameEqual(of_steps, of_all)


@pytest.mark.long
def test_the_commands_do_without_the_files_of_a_closed_day(
    spark: SparkSession, tables: Tables, tmp_path: Path
) -> None:
    """The last test here: it takes the files of the closed day away."""
    folder = Path(tables.root.removeprefix("file:")) / f"usage/day={CLOSED}"
    for path in folder.glob("*.parquet"):
        path.unlink()
    wanted = tmp_path / "policies.yml"
    wanted.write_text("policies: [{name: in force}]", "utf-8")
    for command in (
        ("backtest", f"--policies={wanted}"),
        ("whatif", "--without=2"),
        ("recommend", f"--to={tmp_path}/limits"),
    ):
        done = run(tables, *command)
        assert done.exit_code == 0, f"{done.output}{done.exception!r}"
    assert run(tables, "backtest", "--as-recorded").exit_code != 0, "it compares with every sample"


def run(tables: Tables, *arguments: str) -> Result:
    return CliRunner().invoke(COMMANDS.application(arguments[0]), [*arguments, f"--tables={tables.root}"])
