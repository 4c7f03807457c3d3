"""From a real history topic over TLS into the tables: each record once, whatever happens on the way."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta

import pytest
from pyspark.sql import functions as F

from kquota_pipeline import delta
from kquota_pipeline.ingest import stream
from kquota_pipeline.ingest.lineage import ForeignCheckpoint, settled_version
from kquota_pipeline.ingest.stream import IngestFailed, ingest
from kquota_pipeline.maintain.closing import in_order
from kquota_pipeline.tables import QUARANTINE, RECORDS, USAGE, Tables
from tests.spark.ingest.history import START, counts


@pytest.fixture
def checkpoint(tmp_path) -> str:
    return f"file:{tmp_path}/checkpoint"


def fill(history, usage: int) -> dict[str, int]:
    """Send records of all kinds; return the rows that the tables must have."""
    history.send("usage", range(usage))
    history.send("decision", range(10))
    history.send("clients", range(5))
    history.send("operator", range(2))
    history.send("topics", range(2))
    history.send("expiry", range(2))
    history.send_raw([b"nonsense", None, b'{"Kind":"usage"}'])
    return history.rows()


def test_each_record_is_appended_once_over_tls_in_batches_of_the_size_asked_for(
    spark, tables, checkpoint, history
):
    topic = history(partitions=2, volumes=3)
    expected = fill(topic, 100)
    lines: list[str] = []
    done = ingest(spark, topic.source(max_records_per_batch=50), tables, checkpoint, lines.append)
    assert counts(spark, tables) == expected
    assert (done.records, done.counts[None], done.counts["usage"]) == (124, 3, 100)
    assert done.batches >= 3
    assert len(lines) == done.batches
    assert "records/s" in done.summary() or "/s)" in done.summary()
    raw = delta.read(spark, tables, RECORDS)
    assert raw.select(*RECORDS.identity).distinct().count() == 124
    kind = F.get_json_object(F.col("value").cast("string"), "$.Kind").alias("kind")
    header = F.concat_ws("=", F.col("headers")[0]["key"], F.hex(F.col("headers")[0]["value"])).alias("header")
    found = raw.groupBy(kind, "key", header, F.size("headers"), "kafka_topic").count().collect()
    sent = {**topic.sent, "usage": 101, None: 2}
    assert {row["kind"]: row["count"] for row in found} == {
        kind: sent[kind] for kind in sent if kind != "malformed"
    }
    assert {
        (bytes(row["key"]), row["header"], row["size(headers)"], row["kafka_topic"]) for row in found
    } == {(b"1", "kquota-signature=00FF", 1, topic.topic)}
    # Nothing new: nothing happens. Then only the new records.
    assert ingest(spark, topic.source(), tables, checkpoint).records == 0
    topic.send("usage", range(100, 110))
    assert ingest(spark, topic.source(), tables, checkpoint).records == 10
    assert counts(spark, tables) == topic.rows()
    bad = delta.read(spark, tables, QUARANTINE).where(F.col("value").isNull()).collect()
    assert [(row["reason"], row["kafka_topic"]) for row in bad] == [
        ("no value: a tombstone is no history record", topic.topic)
    ]


@pytest.mark.long
def test_a_back_fill_of_months_comes_in_one_run_and_says_how_it_goes(spark, tables, checkpoint, history):
    topic = history(partitions=2, volumes=2)
    # A record every twelve hours: a hundred days, which a batch has all at once.
    topic.send("usage", range(200), at=START - timedelta(days=100), step_seconds=12 * 3600)
    lines: list[str] = []
    done = ingest(spark, topic.source(max_records_per_batch=90), tables, checkpoint, lines.append)
    days = delta.read(spark, tables, USAGE).groupBy("day").count()
    assert {row["count"] for row in days.collect()} == {4}, "two records of two volumes on each day"
    assert days.count() == 100
    assert len([line for line in lines if line.startswith("batch ")]) == done.batches >= 3
    assert done.summary().startswith("200 records in ")


def test_a_batch_that_broke_off_between_two_tables_is_completed_and_not_repeated(
    spark, tables, checkpoint, history, monkeypatch
):
    topic = history(partitions=1, volumes=2)
    expected = fill(topic, 20)
    real, appended = delta.append, []

    def append(rows, place, table, *transaction):
        if len(appended) == 3:
            raise RuntimeError("the power went out")
        appended.append(table.name)
        real(rows, place, table, *transaction)

    monkeypatch.setattr(stream.delta, "append", append)
    with pytest.raises(IngestFailed, match="the power went out"):
        ingest(spark, topic.source(), tables, checkpoint)
    monkeypatch.undo()
    some = {"records": expected["records"], "usage": 40, "decisions": 10}
    assert counts(spark, tables) == {**dict.fromkeys(expected, 0), **some}
    # Of the records as they came, those of this batch are not yet everywhere: `reparse` leaves them alone.
    settled = delta.read(spark, tables, RECORDS, settled_version(spark, tables, checkpoint))
    assert settled.isEmpty()
    ingest(spark, topic.source(), tables, checkpoint)
    assert counts(spark, tables) == expected
    settled = delta.read(spark, tables, RECORDS, settled_version(spark, tables, checkpoint))
    assert settled.count() == expected["records"]


@pytest.mark.long
def test_a_lost_checkpoint_is_refused_and_adopting_a_new_one_reads_everything_again(
    spark, tables, checkpoint, history, tmp_path
):
    topic = history(partitions=1, volumes=1)
    topic.send("usage", range(10))
    ingest(spark, topic.source(), tables, checkpoint)
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(
        ForeignCheckpoint, match=r"was filled with the checkpoint of query .* there is no checkpoint"
    ):
        ingest(spark, topic.source(), tables, checkpoint)
    assert counts(spark, tables)["usage"] == 10
    ingest(spark, topic.source(), tables, checkpoint, adopt=True)
    assert counts(spark, tables)["usage"] == 20


@pytest.mark.long
def test_a_checkpoint_of_other_tables_or_an_older_copy_of_the_own_one_is_refused(
    spark, tables, checkpoint, history, tmp_path
):
    topic = history(partitions=1, volumes=1)
    topic.send("usage", range(10))
    ingest(spark, topic.source(), tables, checkpoint)
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "copy")
    other = Tables(f"file:{tmp_path}/others")
    ingest(spark, topic.source(), other, f"file:{tmp_path}/other-checkpoint")
    with pytest.raises(ForeignCheckpoint, match="the checkpoint there is of query"):
        ingest(spark, topic.source(), tables, f"file:{tmp_path}/other-checkpoint")
    topic.send("usage", range(10, 20))
    ingest(spark, topic.source(), tables, checkpoint)
    with pytest.raises(ForeignCheckpoint, match=r"does not know batch 1.*it was restored from an older copy"):
        ingest(spark, topic.source(), tables, f"file:{tmp_path}/copy")
    assert delta.read(spark, tables, USAGE).count() == 20


def test_a_topic_that_was_made_again_is_refused_until_it_is_adopted(spark, tables, checkpoint, history):
    topic = history(partitions=1, volumes=1)
    topic.send("usage", range(11))
    topic.send_raw([b"nonsense"])
    ingest(spark, topic.source(), tables, checkpoint)
    first = counts(spark, tables)
    topic.make_again()
    topic.send_raw([b"other nonsense"] * 12)
    topic.send("usage", range(100, 128))
    refused = rf"the id \S{{22}}, and {topic.topic} has the id \S{{22}}: it was made again.* --adopt: "
    with pytest.raises(ForeignCheckpoint, match=refused):
        ingest(spark, topic.source(), tables, checkpoint)
    assert counts(spark, tables) == first
    again = f"{checkpoint}-again"
    assert ingest(spark, topic.source(), tables, again, adopt=True).records == 40
    assert counts(spark, tables) == topic.rows(), "of both topics"
    with pytest.raises(ForeignCheckpoint, match="is another topic"):
        ingest(spark, history(partitions=1).source(), tables, again)
    # Offset 11 is in both topics, with other bytes: `maintain` takes neither record for the other one.
    bad = delta.read(spark, tables, QUARANTINE)
    assert in_order(bad.union(bad), QUARANTINE, 1).count() == bad.count() == 13


def test_an_option_that_spark_refuses_at_the_start_ends_with_a_sentence(spark, tables, checkpoint, history):
    source = history(partitions=1).source()
    refused = replace(source, options={**source.options, "value.deserializer": "a.B"})
    with pytest.raises(IngestFailed, match=r"'value\.deserializer' is not supported"):
        ingest(spark, refused, tables, checkpoint)
    unknown = replace(source, options={**source.options, "security.protocol": "TLS"})
    with pytest.raises(IngestFailed, match=rf"topic {source.topic}: .*security\.protocol"):
        ingest(spark, unknown, tables, checkpoint)


def test_a_topic_that_is_not_there_is_named(spark, tables, checkpoint, kafka, history):
    topic = history(partitions=1)
    source = topic.source()
    missing = type(source)(source.bootstrap_servers, "no-such-topic", source.options)
    with pytest.raises(IngestFailed, match=r"no-such-topic: .*UnknownTopicOrPartition"):
        ingest(spark, missing, tables, checkpoint)
