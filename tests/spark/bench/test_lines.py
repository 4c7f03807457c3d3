"""The least-squares line of each volume, from plain sums."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from pyspark.sql import SparkSession

from bench.pipeline.lines import straight_line
from kquota_pipeline.tables import USAGE
from tests.spark.rows import rows

START = datetime(2031, 3, 1, 22, 15, 30, tzinfo=UTC)


def usage(spark: SparkSession, points: list[tuple[int, float]], volume: str = "/dev/sdb"):
    return rows(
        spark,
        USAGE,
        [
            {
                "cluster_id": "c",
                "broker_id": 1,
                "volume_name": volume,
                "at": START + timedelta(seconds=seconds),
                "consumed_bytes": int(value),
            }
            for seconds, value in points
        ],
    )


def test_the_line_over_several_days_is_that_of_least_squares_and_far_from_the_origin_keeps_its_digits(
    spark: SparkSession,
) -> None:
    rng = np.random.default_rng(3)
    seconds = np.sort(rng.integers(0, 3 * 86_400, 500))
    values = 3e12 + 1234.5 * seconds + rng.normal(0, 1e8, 500)
    points = [(int(at), value) for at, value in zip(seconds, values, strict=True)]
    (line,) = straight_line(usage(spark, points)).collect()
    slope, height = np.polyfit(seconds - seconds.mean(), np.floor(values), 1)
    assert line.slope_bytes_per_second == pytest.approx(slope, rel=1e-7)
    assert line.level_bytes == pytest.approx(height, rel=1e-12)
    assert line.mean_at == pytest.approx(START.timestamp() + seconds.mean(), abs=1e-3)
    assert line.samples == 500


def test_samples_of_one_moment_have_no_slope(spark: SparkSession) -> None:
    one = usage(spark, [(7, 1e12)])
    same = usage(spark, [(7, 1e12), (7, 2e12), (7, 3e12)], "/dev/sdc")
    assert [row.slope_bytes_per_second for row in straight_line(one.union(same)).collect()] == [None, None]
