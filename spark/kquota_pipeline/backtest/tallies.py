"""The columns of the producers that a policy holds: in each tick, and as sums."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, IntegerType, StructField

TALLY = (
    StructField("paused_producers", IntegerType()),
    StructField("slowed_producers", IntegerType()),
    StructField("unlisted_clients", IntegerType()),
    StructField("by_cluster", BooleanType()),
)
"""The fields of `producers.Tally`."""


def held_columns(tick_seconds: int) -> list[Column]:
    """Return the sums over ticks.

    Columns: paused_producer_hours, slowed_producer_hours, unlisted_client_hours, cluster_scope_seconds; null
    where the ticks have no producers.
    """
    hours = [
        (F.sum(name) * tick_seconds / 3600).alias(total)
        for name, total in (
            ("paused_producers", "paused_producer_hours"),
            ("slowed_producers", "slowed_producer_hours"),
            ("unlisted_clients", "unlisted_client_hours"),
        )
    ]
    return [*hours, (F.sum(F.col("by_cluster").cast("int")) * tick_seconds).alias("cluster_scope_seconds")]
