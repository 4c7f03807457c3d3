"""The hand-over of each cluster's history from Spark to Python: its events, then its rows, batch by batch.

Spark gives Python a group, or two that belong together, in one piece of Arrow, whose buffer ends at 2 GiB:
a year of 60 brokers with 12 volumes each. A stream of batches has no end; those of one cluster follow each
other in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from itertools import chain, groupby, pairwise
from operator import itemgetter

import numpy as np
import pyarrow as pa
from pyarrow.json import ParseOptions, ReadOptions, read_json
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kquota_pipeline.backtest.policy import Policy
from kquota_pipeline.backtest.stage import cluster_key

Work = Callable[[int, str, pa.Table, Iterator[pa.RecordBatch]], pa.Table]
"""A task of Python: of the number of a part, a cluster's id, its events and its rows, it returns a table."""
_PART, _CLUSTER_KEY, _EVENT = "part", "cluster_key", "event"


def parts_of(usage: DataFrame, policies: Sequence[Policy]) -> int:
    """Return in how many parts policies are simulated.

    Those of a part share the arrays of their cluster, so there are no more parts than can run at once.
    """
    return max(1, min(len(policies), usage.sparkSession.sparkContext.defaultParallelism))


def for_parts(parts: int, rows: DataFrame, events: DataFrame, work: Work, schema: StructType) -> DataFrame:
    """Return what `work` makes of each cluster's rows (stage.samples) and events (stage.happenings), once for
    each part of the policies.
    """
    of_event = to_arrow_schema(events.schema)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = (piece for batch in batches for piece in _pieces(batch))
        for (part, _), of_cluster in groupby(pieces, key=itemgetter(0)):
            found, own_rows = _apart((piece for _, piece in of_cluster), of_event)
            yield from work(part, found["cluster_id"][0].as_py(), found, own_rows).to_batches()

    return in_order(parts, rows, events).mapInArrow(run, schema)


def in_order(parts: int, rows: DataFrame, events: DataFrame) -> DataFrame:
    """Return both in one frame, once for each part, the events of a cluster before its rows.

    A row is of numbers alone, which are null next to an event; its `event` is null. An event is JSON: Spark
    looks at the size of a batch with each row, and for a struct that takes twenty times as long as the row.
    """
    copies = F.explode(F.array(*[F.lit(part) for part in range(parts)])).alias(_PART)
    texts = F.to_json(F.struct(*events.columns)).alias(_EVENT)
    both = events.select(copies, cluster_key().alias(_CLUSTER_KEY), texts).unionByName(
        rows.select(copies, *rows.columns), allowMissingColumns=True
    )
    return both.repartition(_PART, _CLUSTER_KEY).sortWithinPartitions(
        _PART, _CLUSTER_KEY, F.col(_EVENT).isNull()
    )


def _pieces(batch: pa.RecordBatch) -> Iterator[tuple[tuple[int, int], pa.RecordBatch]]:
    """Yield the rows of each part and cluster, with the key of both."""
    keys = np.stack([batch[name].to_numpy() for name in (_PART, _CLUSTER_KEY)])
    begins = np.flatnonzero((np.diff(keys, axis=1) != 0).any(axis=0)) + 1
    for begin, end in pairwise([0, *begins.tolist(), batch.num_rows]):
        part, key = keys[:, begin].tolist()
        yield (part, key), batch.slice(begin, end - begin)


def _apart(
    pieces: Iterator[pa.RecordBatch], of_event: pa.Schema
) -> tuple[pa.Table, Iterator[pa.RecordBatch]]:
    """Return a cluster's events, and its rows, which are read when they are asked for."""
    events, rows = [], pieces
    for piece in pieces:
        count = piece.num_rows - piece[_EVENT].null_count
        if count:  # each volume that has a row is named by an event, so there is one
            events.append(_read(piece[_EVENT].slice(0, count), of_event))
        if count < piece.num_rows:
            rows = chain([piece.slice(count)], pieces)
            break
    return pa.concat_tables(events), rows


def _read(texts: pa.StringArray, of_event: pa.Schema) -> pa.Table:
    lines = "\n".join(texts.to_pylist()).encode()
    return read_json(
        BytesIO(lines),
        ReadOptions(use_threads=False, block_size=len(lines) + 1),
        ParseOptions(explicit_schema=of_event, unexpected_field_behavior="error"),
    )
