"""Forecasts of generated months, made from the data of days ago, next to simpler ones and the outcome."""

from __future__ import annotations

from functools import reduce

import pytest
from pyspark.sql import DataFrame, SparkSession

from kquota_pipeline.forecast.accuracy import OURS, accuracy, forecast_errors
from kquota_pipeline.forecast.series import hourly
from kquota_pipeline.generator.fleet import FleetSize
from kquota_pipeline.generator.history import generate


@pytest.mark.long
def test_the_forecast_is_better_than_simpler_ones_and_its_interval_holds_what_it_promises(
    spark: SparkSession,
) -> None:
    months = [
        forecast_errors(hourly(generate(spark, FleetSize(seed=seed, brokers=5, interval_seconds=3600)).usage))
        for seed in (2, 7)
    ]
    errors = reduce(DataFrame.union, months).cache()
    found = {row["method"]: row for row in accuracy(errors).collect()}
    ours = found[OURS]
    for other, most in (("straight line", 0.9), ("seasonal-naive", 0.9), ("naive", 1.0)):
        assert ours["mean_error_ratio"] < most * found[other]["mean_error_ratio"], other
        assert found[other]["forecasts"] == ours["forecasts"]
        assert found[other]["covered_ratio"] is None
    # 80 % is promised, of moments that share their bursts: not far less, and not all.
    assert 0.7 <= ours["covered_ratio"] <= 0.95
    by_day = [row for row in accuracy(errors, "days_ahead").collect() if row["method"] == OURS]
    assert sorted(row["days_ahead"] for row in by_day) == [1, 2, 3, 4, 5, 6, 7]
    assert all(row["covered_ratio"] >= 0.6 for row in by_day)
