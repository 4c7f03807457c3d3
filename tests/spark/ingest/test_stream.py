"""From a real history topic over TLS into the tables: each record once, whatever happens on the way."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from kquota_pipeline import delta
from kquota_pipeline.ingest.stream import ingest
from kquota_pipeline.tables import QUARANTINE
from tests.spark.ingest.history import counts


@pytest.fixture
def checkpoint(tmp_path) -> str:
    return f"file:{tmp_path}/checkpoint"


def fill(history, usage: int) -> dict[str, int]:
    """Send records of all kinds; return the rows that the tables must have."""
    history.send("usage", range(usage))
    history.send("decision", range(10))
    history.send("clients", range(5))
    history.send("operator", range(2))
    history.send_raw([b"nonsense", None, b'{"Kind":"usage"}'])
    return {
        "usage": usage * history.volumes,
        "decisions": 10,
        "clients": 10,
        "operators": 2,
        "quarantine": 3,
    }


def test_each_record_is_appended_once_over_tls_in_batches_of_the_size_asked_for(
    spark, tables, checkpoint, history
):
    topic = history(partitions=2, volumes=3)
    expected = fill(topic, 100)
    lines: list[str] = []
    done = ingest(spark, topic.source(max_records_per_batch=50), tables, checkpoint, lines.append)
    assert counts(spark, tables) == expected
    assert (done.records, done.counts[None], done.counts["usage"]) == (120, 3, 100)
    assert done.batches >= 3
    assert len(lines) == done.batches
    assert "records/s" in done.summary() or "/s)" in done.summary()
    # Nothing new: nothing happens. Then only what is new.
    assert ingest(spark, topic.source(), tables, checkpoint).records == 0
    topic.send("usage", range(100, 110))
    assert ingest(spark, topic.source(), tables, checkpoint).records == 10
    assert counts(spark, tables) == {**expected, "usage": 330}
    bad = delta.read(spark, tables, QUARANTINE).where(F.col("value").isNull()).collect()
    assert [(row["reason"], row["kafka_topic"]) for row in bad] == [
        ("no value: a tombstone is no history record", topic.topic)
    ]
