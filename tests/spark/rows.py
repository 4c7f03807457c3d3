"""Rows for tests, made without Python workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kquota_pipeline.tables import Table


def rows(spark: SparkSession, table: Table, given: Sequence[Mapping[str, object]]) -> DataFrame:
    """Return rows of a table; columns that are not given are null."""
    names = sorted({name for row in given for name in row})
    frame = spark.createDataFrame(pa.table({name: [row.get(name) for row in given] for name in names}))
    types = {field.name: field.dataType for field in table.schema}
    return frame.select(
        *(
            (F.col(name) if name in names else F.lit(None)).cast(kind).alias(name)
            for name, kind in types.items()
        )
    )
