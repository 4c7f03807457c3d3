"""The accuracy of the forecast: months of generated clusters, forecast from the data of days before."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from bench.pipeline.figures import Accuracy
from kquota_pipeline.forecast.job import accuracy, accuracy_by_day, forecast_errors
from kquota_pipeline.forecast.series import hourly
from kquota_pipeline.generator.fleet import FleetSize
from kquota_pipeline.generator.history import generate


def measure_accuracy(spark: SparkSession, seeds: range) -> list[Accuracy]:
    """Return the accuracy of each method over the months of this many clusters, the best first."""
    months = [
        forecast_errors(hourly(generate(spark, FleetSize(seed=seed, interval_seconds=1800)).usage))
        for seed in seeds
    ]
    errors = reduce(DataFrame.union, months).cache()
    by_day = {
        (row["method"], row["days_ahead"]): row["covered_ratio"] for row in accuracy_by_day(errors).collect()
    }
    return [
        Accuracy(
            method=row["method"],
            forecasts=row["forecasts"],
            mean_error_ratio=row["mean_error_ratio"],
            median_error_ratio=row["median_error_ratio"],
            covered_ratio=row["covered_ratio"],
            covered_by_day=tuple(
                share
                for (method, _), share in sorted(by_day.items())
                if method == row["method"] and share is not None
            ),
        )
        for row in accuracy(errors).orderBy("mean_error_ratio").collect()
    ]
