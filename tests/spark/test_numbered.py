"""Numbers in place of texts: the samples of closed days come to the same with them and without."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from kquota_pipeline import delta
from kquota_pipeline.backtest.statistics import statistics
from kquota_pipeline.forecast.series import hourly
from kquota_pipeline.maintain.closing import close_day, in_order
from kquota_pipeline.maintain.upkeep import maintain
from kquota_pipeline.numbered import DESCRIPTION, FIRST, NUMBER, without_number
from kquota_pipeline.tables import HOURS, USAGE
from tests.spark.rows import rows

MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)
DAYS = [date(2026, 11, 20), date(2026, 11, 21)]


def fleet(seed: int) -> Iterator[dict[str, object]]:
    """Samples of two clusters with the same names of volumes, whose description changes at times."""
    chance = random.Random(seed)
    for cluster, broker, volume in (
        (c, b, v) for c in "AB" for b in (1, 2) for v in ("/dev/sda", "/dev/sdb")
    ):
        described: dict[str, object] = {}
        for minute in range(0, 2 * 24 * 60, 40):
            if not described or chance.random() < 0.2:
                described = {
                    "volume_id": chance.choice([None, "fs", "fs 2"]),
                    "mount_point": chance.choice([None, "/data/1", "/data/2"]),
                    "status": chance.choice(["ok", "ok", "ok", "failed", "offline"]),
                    "role": chance.choice(["data", "data", "data", "metadata"]),
                    "hard_limit_type": chance.choice(["MinFreePercentage", "ConsumedSpace", "of the future"]),
                    "hard_limit_level": chance.choice([5.0, 7.0]),
                    "soft_limit_type": chance.choice(["MinFreeBytes", None]),
                    "soft_limit_level": chance.choice([20.0, None]),
                }
            at = MIDNIGHT + timedelta(minutes=minute, seconds=broker)
            yield {
                "cluster_id": cluster,
                "broker_id": broker,
                "instance_id": "I",
                "sequence": minute,
                "at": at,
                "day": at.date(),
                "volume_name": volume,
                "latched": False,
                "capacity_bytes": chance.choice([100, 100, 100, 200, 0]),
                "consumed_bytes": chance.randrange(100),
                "applied_factor": chance.choice([None, 1.0, 0.25]),
                **described,
            }


def closed(samples: DataFrame, files: int = 2) -> DataFrame:
    """The samples as two closed days have them."""
    first, second = (in_order(samples.where(F.col("day") == F.lit(day)), USAGE, files) for day in DAYS)
    return first.unionByName(second)


def test_numbered_samples_come_to_the_same_as_their_texts(spark: SparkSession) -> None:
    given = list(fleet(1))
    late = [given.pop(at) for at in (500, 420, 90, 3)]
    samples = rows(spark, USAGE, [*given, *given[5:9], given[100]])
    with_numbers = closed(samples).localCheckpoint()

    described, firsts = defaultdict(set), defaultdict(int)
    for row in with_numbers.collect():
        described[row[NUMBER]].add((row["day"], *(row[name] for name in DESCRIPTION)))
        firsts[row[NUMBER]] += row[FIRST]
    assert {len(texts) for texts in described.values()} == {1}, "a number has one description"
    assert set(firsts.values()) == {1}, "which is found in one row"
    assert 50 < len(described) < len(given) / 2

    # Late samples of closed days have no number, nor has a table of an earlier version.
    partly = with_numbers.unionByName(rows(spark, USAGE, late))
    all_by_texts = rows(spark, USAGE, [*given, *late])
    assert without_number(partly).count() == len(late)
    assertDataFrameEqual(hourly(partly), hourly(all_by_texts))
    assertDataFrameEqual(statistics(partly, 600), statistics(all_by_texts, 600))


def test_a_part_of_a_day_is_refused_rather_than_read_without_its_descriptions(spark: SparkSession) -> None:
    without_first = [one | {NUMBER: 7, FIRST: False} for one in list(fleet(2))[:2]]
    with pytest.raises(SparkRuntimeException, match="are of whole days"):
        hourly(rows(spark, USAGE, without_first)).collect()


@pytest.mark.long
def test_maintain_numbers_a_day_when_it_closes_it_and_again_after_late_samples(spark, tables) -> None:
    given = list(fleet(3))
    late = given.pop(300)
    names = [name for name in USAGE.schema.fieldNames() if name not in (NUMBER, FIRST)]
    delta.create(spark, tables, USAGE)
    # As a version without these columns writes it.
    first = rows(spark, USAGE, given).select(*names)
    first.write.format("delta").mode("append").save(tables.location(USAGE))
    by_texts = rows(spark, USAGE, [*given, late])
    now = MIDNIGHT + timedelta(days=2, hours=3)

    maintain(spark, tables, now)
    assert without_number(delta.read(spark, tables, USAGE)).isEmpty()
    delta.append(rows(spark, USAGE, [late]), tables, USAGE)
    assertDataFrameEqual(hourly(delta.read(spark, tables, USAGE)), hourly(by_texts))
    done = maintain(spark, tables, now)
    assert done.closed_days == 1
    assert without_number(delta.read(spark, tables, USAGE)).isEmpty()
    kept = delta.read(spark, tables, HOURS)
    made = hourly(by_texts)
    assert kept.count() == made.count()
    assert kept.agg(F.sum("crest_bytes"), F.sum("held"), F.sum("hard_bytes")).collect() == [
        pytest.approx(tuple(made.agg(F.sum("crest_bytes"), F.sum("held"), F.sum("hard_bytes")).collect()[0]))
    ]
    close_day(spark, tables, USAGE, DAYS[0])
    assert maintain(spark, tables, now).closed_days == 1
    assertDataFrameEqual(hourly(delta.read(spark, tables, USAGE)), made)
