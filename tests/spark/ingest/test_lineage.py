"""Which checkpoint filled the tables, also when Delta has dropped the log of what was appended."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from kquota_pipeline import delta
from kquota_pipeline.ingest.lineage import (
    Batch,
    ForeignCheckpoint,
    claim,
    require_own_checkpoint,
    settled_version,
)
from kquota_pipeline.tables import INGESTED, RECORDS
from tests.spark.rows import rows


def checkpoint(folder: Path, planned: int, committed: int) -> str:
    """Return the URI of a checkpoint of query Q that knows the batches up to these numbers."""
    for name, last in (("offsets", planned), ("commits", committed)):
        (folder / name).mkdir(parents=True)
        for number in range(last + 1):
            (folder / name / str(number)).write_text("v1\n{}")
    (folder / "metadata").write_text(json.dumps({"id": "Q"}))
    return f"file:{folder}"


def test_an_older_checkpoint_is_refused_also_when_the_log_no_longer_has_its_batches(spark, tables, tmp_path):
    for table in INGESTED[:2]:
        delta.create(spark, tables, table)
    claim(spark, tables, "Q", "T")
    one = rows(spark, RECORDS, [{"day": date(2026, 11, 20)}])
    for number in range(2):
        delta.append(one, tables, RECORDS, ("Q", number), Batch("Q", number).to_json())
    older = checkpoint(tmp_path / "older", 0, 0)
    begun = checkpoint(tmp_path / "begun", 1, 0)
    whole = checkpoint(tmp_path / "whole", 1, 1)
    assert settled_version(spark, tables, begun) == 1
    assert settled_version(spark, tables, whole) == 2

    # As Delta does after a month, once a checkpoint of its own has the state of the table.
    location = tables.location(RECORDS)
    spark.sql(f"ALTER TABLE delta.`{location}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    log = tmp_path / "tables/records/_delta_log"
    assert (log / f"{3:020}.checkpoint.parquet").exists()
    for version in range(3):
        (log / f"{version:020}.json").unlink()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    history = spark.sql(f"DESCRIBE HISTORY delta.`{location}`").select("version").collect()
    assert [row["version"] for row in history] == [3]

    with pytest.raises(ForeignCheckpoint, match=r"does not know batch 1.*it was restored from an older copy"):
        require_own_checkpoint(spark, tables, older)
    require_own_checkpoint(spark, tables, whole)
    assert settled_version(spark, tables, whole) == 3
    with pytest.raises(ForeignCheckpoint, match=r"has not completed batch 1, .* run `kquota-pipeline"):
        settled_version(spark, tables, begun)
