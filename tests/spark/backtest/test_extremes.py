"""The extremes of ticks: those of each cluster, whichever of them is compared by name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from kquota_pipeline.backtest.statistics import statistics
from kquota_pipeline.tables import USAGE
from tests.spark.rows import rows

START = datetime(2026, 11, 20, tzinfo=UTC)


def test_the_extremes_of_clusters_are_those_of_each_alone(spark: SparkSession) -> None:
    samples = rows(
        spark,
        USAGE,
        [
            {
                "cluster_id": cluster,
                "broker_id": broker,
                "volume_name": "/dev/sdb",
                "at": START + timedelta(seconds=20 * place),
                "role": "data",
                "status": "ok",
                "capacity_bytes": 100 * broker,
                "consumed_bytes": (37 * place + 11 * broker + len(cluster)) % 100,
            }
            for cluster in ("A", "BB", "CCC")
            for broker in (1, 2)
            for place in range(9)
        ],
    )
    alone = [statistics(samples.where(F.col("cluster_id") == cluster)) for cluster in ("A", "BB", "CCC")]
    together = statistics(samples)
    assert together.count() == 3 * 6
    assertDataFrameEqual(together, alone[0].unionByName(alone[1]).unionByName(alone[2]))
