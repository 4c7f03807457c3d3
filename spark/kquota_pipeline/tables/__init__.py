"""The tables, in layers: the meaning of a row of each, its identity, and its place.

All are Delta tables below one root, which is a URI of any file system that Spark knows (`file:`, `hdfs:`,
`s3a:`). Each is partitioned by `day`, the UTC day of `at`. Sizes are bytes, rates bytes per second, ratios 0
to 1.
"""

from kquota_pipeline.tables.derived import HOLDINGS, HOURS, LOOKS, MAINTAINED, TEN_MINUTES, WRITINGS
from kquota_pipeline.tables.history import (
    CLIENTS,
    DECISIONS,
    EXPIRY,
    FROM_HISTORY,
    GROUPS,
    LIMIT_REASON,
    OPERATORS,
    QUARANTINE,
    REFUSALS,
    TOPICS,
    UNDETERMINED,
    USAGE,
)
from kquota_pipeline.tables.raw import HEADER, RECORDS
from kquota_pipeline.tables.table import Table, Tables

INGESTED = (RECORDS, *FROM_HISTORY)
"""All that `ingest` appends to, in its order."""
ALL = (*INGESTED, TEN_MINUTES, HOURS, LOOKS, HOLDINGS, WRITINGS, MAINTAINED)
BY_NAME = {table.name: table for table in ALL}

__all__ = [
    "ALL",
    "BY_NAME",
    "CLIENTS",
    "DECISIONS",
    "EXPIRY",
    "FROM_HISTORY",
    "GROUPS",
    "HEADER",
    "HOLDINGS",
    "HOURS",
    "INGESTED",
    "LIMIT_REASON",
    "LOOKS",
    "MAINTAINED",
    "OPERATORS",
    "QUARANTINE",
    "RECORDS",
    "REFUSALS",
    "TEN_MINUTES",
    "TOPICS",
    "UNDETERMINED",
    "USAGE",
    "WRITINGS",
    "Table",
    "Tables",
]
