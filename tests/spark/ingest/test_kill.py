"""Kill -9 of the ingest with its JVM, at points that its files show from outside: the counts stay exact."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import functions as F

from kquota_pipeline import delta
from kquota_pipeline.ingest.lineage import settled_version
from kquota_pipeline.ingest.reparse import reparse
from kquota_pipeline.ingest.stream import ingest
from kquota_pipeline.tables import DECISIONS, RECORDS, USAGE
from tests.spark.ingest.history import START, History, counts
from tests.spark.ingest.process import ingest_arguments, running


def newest(folder: Path, suffix: str = "") -> int:
    """Return the largest number among the names of the files in a folder; -1 without any."""
    names = [path.name.removesuffix(suffix) for path in folder.glob(f"*{suffix}")] if folder.is_dir() else []
    return max((int(name) for name in names if name.isdigit()), default=-1)


def planned(folder: Path) -> int:
    return newest(folder / "checkpoint/offsets")


def committed(folder: Path) -> int:
    return newest(folder / "checkpoint/commits")


def versions(folder: Path, table: str) -> int:
    return newest(folder / f"tables/{table}/_delta_log", ".json")


def assert_exact(spark, tables, history: History) -> None:
    assert counts(spark, tables) == history.rows()
    places = delta.read(spark, tables, RECORDS).select(*RECORDS.identity).distinct()
    assert places.count() == history.sent.total(), "each record once, and none lost"
    for table, kind in ((USAGE, "usage"), (DECISIONS, "decision")):
        sequences = delta.read(spark, tables, table).agg(F.count_distinct("sequence")).first()
        assert sequences is not None
        assert sequences[0] == history.sent[kind]


@pytest.mark.long
def test_an_ingest_killed_between_two_tables_goes_on_exactly_where_it_was(spark, tables, tmp_path, history):
    topic = history(partitions=2, volumes=4)
    topic.send("usage", range(400))
    topic.send("decision", range(400))
    topic.send_raw([b"{"] * 7)
    arguments = ingest_arguments(topic, tmp_path, "--max-records-per-batch=200")
    with running(arguments, tmp_path / "log") as process:
        # The second batch, in which usage is in and decisions perhaps not yet.
        process.kill_when(
            lambda: committed(tmp_path) >= 0 and planned(tmp_path) >= 1 and versions(tmp_path, "usage") >= 3
        )
    checkpoint = f"file:{tmp_path}/checkpoint"
    ingest(spark, topic.source(max_records_per_batch=200), tables, checkpoint)
    assert_exact(spark, tables, topic)
    # The rows that were made of the records are those that a reparse makes.
    day = START.date()
    assert reparse(spark, tables, day, day, settled_version(spark, tables, checkpoint)) == 800
    assert_exact(spark, tables, topic)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_an_ingest_killed_again_and_again_loses_and_repeats_nothing(spark, tables, tmp_path, history):
    topic = history(partitions=4, volumes=8)
    # All kinds in every batch: a point that is waited for must lie in the next one, not in the last.
    for part in range(25):
        topic.send("usage", range(part * 1600, (part + 1) * 1600))
        topic.send("decision", range(part * 400, (part + 1) * 400))
        topic.send("clients", range(part * 20, (part + 1) * 20))
        topic.send("operator", range(part * 2, (part + 1) * 2))
        topic.send("topics", range(part * 4, (part + 1) * 4))
        topic.send("expiry", range(part * 4, (part + 1) * 4))
        topic.send_raw([b"nonsense"] * 16)
    arguments = ingest_arguments(topic, tmp_path, "--max-records-per-batch=4000")

    def one_more(look, *names):
        before = look(tmp_path, *names)
        return lambda: look(tmp_path, *names) > before

    points = [
        (planned,),
        (versions, "records"),
        (versions, "usage"),
        (versions, "decisions"),
        (committed,),
        (versions, "quarantine"),
        (planned,),
        (versions, "usage"),
        (committed,),
    ]
    for point in points:
        with running(arguments, tmp_path / "log") as process:
            process.kill_when(one_more(*point))
    with running(arguments, tmp_path / "log") as process:
        assert process.wait() == 0, process.tail()
    assert "incubator" not in (tmp_path / "log").read_text("utf-8"), "Java's warning is left out"
    assert_exact(spark, tables, topic)
