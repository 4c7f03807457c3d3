"""A table: the meaning of its rows, their identity, their order, and its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.types import (
    DataType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

Column = tuple[str, DataType, str]

# The first columns of every table from the history topic.
ENVELOPE: Sequence[Column] = (
    ("cluster_id", StringType(), "Kafka's cluster id"),
    ("broker_id", IntegerType(), "the broker whose agent recorded this"),
    ("instance_id", StringType(), "new at each start of that agent"),
    ("sequence", LongType(), "counts per instance and kind"),
    ("at", TimestampType(), "when it was so"),
    ("day", DateType(), "the UTC day of at"),
)
# Where the record was in the history topic. Of rows with one identity the one with the first place is kept.
PLACE: Sequence[Column] = (
    ("kafka_partition", IntegerType(), "in the history topic"),
    ("kafka_offset", LongType(), "in that partition"),
)
RECORD_IDENTITY = ("cluster_id", "broker_id", "instance_id", "sequence")


@dataclass(frozen=True)
class Table:
    """One table. `identity` distinguishes rows; `order` is how a day's rows lie in its files; `version`
    is that of its columns and of their meaning; `rows_per_file` make about 128 MB.
    """

    name: str
    what: str
    columns: tuple[Column, ...]
    identity: tuple[str, ...]
    order: tuple[str, ...]
    version: int = 1
    rows_per_file: int = 20_000_000

    @property
    def schema(self) -> StructType:
        """The columns as Spark's schema; all are nullable, as Delta reads them back."""
        return StructType([StructField(name, kind, True) for name, kind, _ in self.columns])


@dataclass(frozen=True)
class Tables:
    """Where the tables are: `root` is a URI."""

    root: str

    def location(self, table: Table) -> str:
        """Return a table's URI."""
        return f"{self.root.rstrip('/')}/{table.name}"
