"""The hourly job: an ingest and the upkeep, of one start of Spark."""

from __future__ import annotations

import pytest

from kquota_pipeline import delta
from kquota_pipeline.tables import HOURS
from tests.spark.ingest.history import counts
from tests.spark.ingest.process import ingest_arguments, running

KEPT = ("--retention-days=36500", "--raw-retention-days=36500")


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_one_start_ingests_and_maintains_also_where_kafka_is_not_there(spark, tables, tmp_path, history):
    topic = history()
    topic.send("usage", range(20))
    arguments = [*ingest_arguments(topic, tmp_path), "--maintain", *KEPT]
    with running(arguments, tmp_path / "log") as process:
        assert process.wait() == 0, process.tail()
    assert counts(spark, tables) == topic.rows()
    assert not delta.read(spark, tables, HOURS).isEmpty()

    with (tmp_path / "client.properties").open("a") as properties:
        properties.write("default.api.timeout.ms=1000\nrequest.timeout.ms=500\n")
    with running([*arguments, "--bootstrap-servers=127.0.0.1:1"], tmp_path / "without") as process:
        assert process.wait() == 1, process.tail()
    assert "nothing is due" in process.tail()
    assert f"kquota-pipeline: topic {topic.topic}: " in process.tail()
