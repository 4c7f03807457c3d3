"""Skew between volumes, and what the best move would gain."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from kquota_pipeline.skew import best_moves, broker_skew

_SCHEMA = (
    "cluster_id string, broker_id int, volume_name string, mount_point string, capacity_bytes long, "
    "consumed_bytes long, used_ratio double"
)


def volumes(spark: SparkSession, *rows: tuple[int, str, int, int]) -> DataFrame:
    return spark.createDataFrame(
        [("c", broker, name, None, capacity, used, used / capacity) for broker, name, capacity, used in rows],
        _SCHEMA,
    )


def test_the_move_that_gains_most_evens_the_fullest_with_the_emptiest(spark: SparkSession) -> None:
    frame = volumes(spark, (1, "a", 100, 90), (1, "b", 100, 50), (2, "a", 200, 60))
    (move,) = best_moves(frame).collect()
    assert (move.from_broker_id, move.from_volume, move.to_broker_id, move.to_volume) == (1, "a", 2, "a")
    # (90 + 60) / (100 + 200) = 0.5: after it the fullest is b with 0.5, too
    assert move.after_ratio == pytest.approx(0.5)
    assert move.move_bytes == 40
    assert move.gain_ratio == pytest.approx(0.4)
    assert move.even_ratio == pytest.approx(0.5)


def test_a_move_gains_no_more_than_the_second_fullest_allows(spark: SparkSession) -> None:
    frame = volumes(spark, (1, "a", 100, 90), (1, "b", 100, 85), (2, "a", 100, 10))
    (move,) = best_moves(frame).collect()
    assert move.after_ratio == pytest.approx(0.85)
    assert move.move_bytes == 5


def test_a_brokers_skew_is_its_fullest_less_its_emptiest_volume(spark: SparkSession) -> None:
    frame = volumes(spark, (1, "a", 100, 90), (1, "b", 100, 50), (2, "a", 200, 60))
    expected = spark.createDataFrame(
        [("c", 1, 2, 200.0, 140.0, 0.9, 0.5, 0.7, 0.4), ("c", 2, 1, 200.0, 60.0, 0.3, 0.3, 0.3, 0.0)],
        "cluster_id string, broker_id int, volumes long, capacity_bytes double, consumed_bytes double, "
        "fullest_ratio double, emptiest_ratio double, used_ratio double, spread_ratio double",
    )
    assertDataFrameEqual(broker_skew(frame), expected)
