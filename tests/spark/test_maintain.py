"""The upkeep: duplicates of closed days, derived tables, few files, an end of keeping."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from kquota_pipeline import delta
from kquota_pipeline.accounting.clients import by_quota_group, refused
from kquota_pipeline.maintain.closing import in_order
from kquota_pipeline.maintain.days import files_of_days
from kquota_pipeline.maintain.hours import hour_rows, look_rows
from kquota_pipeline.maintain.upkeep import Upkeep, maintain
from kquota_pipeline.skew import best_moves, broker_skew, volumes_now
from kquota_pipeline.tables import (
    EXPIRY,
    GROUPS,
    HOLDINGS,
    HOURS,
    MAINTAINED,
    QUARANTINE,
    RECORDS,
    REFUSALS,
    TEN_MINUTES,
    TOPICS,
    USAGE,
)
from tests.spark.rows import rows

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
TODAY = date(2026, 11, 20)
# Derived of a day with samples alone.
DERIVED = {"ten_minutes": 1, "hours": 1, "looks": 0, "holdings": 1, "writings": 0}


def volume(sequence: int, at: datetime, consumed: int = 40, name: str = "/dev/sda", broker: int = 1, **more):
    return {
        "cluster_id": "C",
        "broker_id": broker,
        "instance_id": "I",
        "sequence": sequence,
        "at": at,
        "day": at.date(),
        "volume_name": name,
        "status": "ok",
        "role": "data",
        "latched": False,
        "capacity_bytes": 100,
        "consumed_bytes": consumed,
        **more,
    }


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_closed_days_lose_their_duplicates_open_ones_are_compacted_and_old_ones_dropped(
    spark, tables, tmp_path
):
    delta.create(spark, tables, USAGE)
    yesterday = NOON - timedelta(days=1)
    closed = [volume(sequence, yesterday + seconds(30 * sequence)) for sequence in range(20)]
    of_today = [volume(100 + sequence, NOON + seconds(30 * sequence)) for sequence in range(40)]
    old = [volume(900 + age, NOON - timedelta(days=age)) for age in (11, 30)]
    delta.append(rows(spark, USAGE, [*closed, *closed[8:12], *closed[8:9], *old]), tables, USAGE)
    delta.append(rows(spark, USAGE, [*of_today, *of_today]).repartition(24), tables, USAGE)
    assert len(files_of_days(spark, tables, USAGE)[TODAY]) > 16

    done = maintain(spark, tables, NOON, Upkeep(retention_days=10))
    assert (done.closed_days, done.duplicates) == (1, 5)
    assert done.derived_days == DERIVED
    assert (done.compacted_days, done.dropped_days) == (1, 2)
    usage = delta.read(spark, tables, USAGE)
    days = {row["day"]: row["count"] for row in usage.groupBy("day").count().collect()}
    assert days == {yesterday.date(): 20, TODAY: 80}
    assert usage.where(F.col("day") < TODAY).select("sequence").distinct().count() == 20
    assert {day: len(files) for day, files in files_of_days(spark, tables, USAGE).items()} == {
        yesterday.date(): 1,
        TODAY: 1,
    }

    for table in (TEN_MINUTES, HOURS):
        assert {row["day"] for row in delta.read(spark, tables, table).collect()} == {yesterday.date()}
    (held,) = delta.read(spark, tables, HOLDINGS).collect()
    assert (held["topic"], held["byte_days"], held["hours"]) == (None, pytest.approx(40 / 24), 1)

    # Late records make the day due again; unchanged days are left alone.
    delta.append(rows(spark, USAGE, closed[:3]), tables, USAGE)
    # Delta refuses to delete files that a reader of today may still need; there is none here.
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(check, "false")
    try:
        late = maintain(spark, tables, NOON, Upkeep(retention_days=10, vacuum_after=seconds(0)))
    finally:
        spark.conf.unset(check)
    assert (late.closed_days, late.duplicates, late.dropped_days) == (1, 3, 0)
    assert late.derived_days == DERIVED
    for table in (USAGE, TEN_MINUTES, HOURS, HOLDINGS, MAINTAINED):
        files = files_of_days(spark, tables, table)
        needed = {Path(name).name for names in files.values() for name in names}
        assert {path.name for path in tmp_path.glob(f"tables/{table.name}/day=*/*.parquet")} == needed
        assert {len(names) for names in files.values()} == {1}, table.name


def test_a_day_in_order_has_each_identity_once_also_where_parts_of_it_are_null(spark, capsys):
    def look(sequence: int, topic: str | None, bytes_: int = 1, broker: int = 1, instance: str = "I"):
        at = NOON + seconds(sequence // 2)
        place = {"cluster_id": "C", "broker_id": broker, "instance_id": instance, "sequence": sequence}
        return {**place, "at": at, "volume_name": "/dev/sda", "topic": topic, "bytes": bytes_}

    once = [look(n, topic, broker=b) for n in range(6) for topic in (None, "a", "b") for b in (1, 2)]
    once += [look(3, None, instance="J"), look(3, "a", instance="J")]
    given = rows(spark, TOPICS, [*once, *once[3:9], *once[3:5], once[0]])
    ordered = in_order(given, TOPICS, 1)
    found = [(row.broker_id, row.topic or "", row.sequence, row.instance_id) for row in ordered.collect()]
    assert sorted(found) == sorted(
        (one["broker_id"], one["topic"] or "", one["sequence"], one["instance_id"]) for one in once
    )
    assert [one[:3] for one in found] == sorted(one[:3] for one in found), "in the table's own order"
    ordered.explain()
    assert capsys.readouterr().out.partition("== Initial Plan ==")[0].count("Sort [") == 1, "of one sort"


def test_records_of_one_partition_of_the_topic_are_put_in_order_by_several_tasks(spark, capsys):
    def record(offset: int):
        return {
            "kafka_topic": "history",
            "kafka_partition": 0,
            "kafka_offset": offset,
            "kafka_timestamp": NOON,
        }

    offsets = [10_000 * stretch + place for stretch in range(8) for place in (9_999, 0, 1)]
    given = rows(spark, RECORDS, [record(offset) for offset in [*offsets, *offsets[3:9]]])
    ordered = in_order(given, RECORDS, 4)
    assert ordered.schema == RECORDS.schema
    parts: dict[int, list[int]] = {}
    for row in ordered.select(F.spark_partition_id().alias("part"), "kafka_offset").collect():
        parts.setdefault(row.part, []).append(row.kafka_offset)
    assert len(parts) > 1
    assert all(part == sorted(part) for part in parts.values())
    assert sorted(offset for part in parts.values() for offset in part) == sorted(offsets), "each once"
    ordered.explain()
    assert capsys.readouterr().out.partition("== Initial Plan ==")[0].count("Sort [") == 1, "of one sort"


def test_a_record_is_one_by_its_place_and_content_and_not_by_the_time_that_a_clock_gave_it(spark):
    place = {"kafka_topic": "history", "kafka_partition": 0, "kafka_offset": 7, "key": b"1"}
    again = [
        {**place, "kafka_timestamp": NOON, "value": b"one"},
        {**place, "kafka_timestamp": NOON + seconds(1), "value": b"one"},
        {**place, "kafka_timestamp": NOON, "value": b"of a topic that was made again"},
        {**place, "kafka_timestamp": NOON, "value": None},
        {**place, "kafka_timestamp": NOON + seconds(2), "value": None},
    ]
    for table in (RECORDS, QUARANTINE):
        found = in_order(rows(spark, table, again), table, 1).collect()
        assert sorted(bytes(row["value"] or b"") for row in found) == [
            b"", b"of a topic that was made again", b"one",
        ]  # fmt: skip


def test_file_systems_that_call_themselves_8_eib_have_sums_like_others(spark):
    most = 2**63 - 1
    huge = {"capacity_bytes": most, "volume_id": "V", "mount_point": "/data"}
    usage = rows(
        spark,
        USAGE,
        [
            volume(sequence, NOON + seconds(sequence), consumed=most, name=name, **huge)
            for sequence in range(3)
            for name in ("/dev/a", "/dev/b")
        ],
    )
    place = {"cluster_id": "C", "broker_id": 1, "volume_name": "/dev/a", "at": NOON, "day": TODAY}
    staying = dict.fromkeys(("never_bytes", "stray_bytes", "unknown_bytes"), most)
    topics = [{**place, "topic": "a", "bytes": most, "leaving_soon_bytes": most, "retention_seconds": 1.0}]
    assert [row["mean_bytes"] for row in hour_rows(usage).collect()] == [float(most)] * 2
    looks = look_rows(rows(spark, EXPIRY, [{**place, **staying}]), rows(spark, TOPICS, topics)).collect()
    assert {row["topic"]: row["staying_bytes"] for row in looks} == {None: 3.0 * most, "a": None}
    volumes = volumes_now(usage)
    (broker,) = broker_skew(volumes).collect()
    assert (broker["capacity_bytes"], broker["used_ratio"]) == (2.0 * most, 1.0)
    (move,) = best_moves(volumes).collect()
    assert (move["even_ratio"], move["move_bytes"]) == (1.0, 0)
    refusals = [{**place, "principal": "User:a", "client_id": "x", "requests": most}] * 2
    assert [row["requests"] for row in refused(rows(spark, REFUSALS, refusals)).collect()] == [most]
    groups = [{**place, "group": "g", "window_seconds": 1.0, "refused_requests": most, "broker_id": broker}
              for broker in (1, 1, 2)]  # fmt: skip
    assert [row["refused_requests"] for row in by_quota_group(rows(spark, GROUPS, groups)).collect()] == [
        most
    ]


def test_tables_that_are_not_there_are_named(spark, tables):
    with pytest.raises(delta.NotATable, match="there is no table usage"):
        maintain(spark, tables, NOON)


@pytest.mark.parametrize(("minutes", "closed"), [(119, False), (120, True)])
def test_a_day_is_closed_only_some_time_after_its_end(minutes, closed):
    midnight = datetime(2026, 11, 21, tzinfo=UTC)
    settings = Upkeep(closed_after=timedelta(hours=2))
    assert settings.is_closed(TODAY, midnight + timedelta(minutes=minutes)) is closed
