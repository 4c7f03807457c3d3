"""How a command starts Spark."""

from __future__ import annotations

from pyspark.sql import SparkSession

from kquota_pipeline.cli.options import fail, say, spark_settings
from kquota_pipeline.jars import JarsUnavailable
from kquota_pipeline.session import start_session


def command_session(command: str, spark: list[str] | None) -> SparkSession:
    """Return the session of a command with the settings of --spark; ends the command if its jars are not
    available.
    """
    try:
        return start_session(f"kquota-pipeline {command}", spark_settings(spark), say)
    except JarsUnavailable as error:
        fail(str(error))
