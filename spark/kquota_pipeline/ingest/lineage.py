"""Which checkpoint filled the tables, and from which topic: another one must not go on as if nothing had
happened.

Delta skips a batch whose number it has already seen of the same application. A checkpoint that starts again
counts its batches from 0, one that was restored from a copy counts them again: with another content under the
same number, records would be dropped in silence. So the application is the streaming query's own id, which is
new with each new checkpoint; the first table remembers it; and each append remembers its batch. The newest
batch is read where Delta itself compares, in the table's state: its history is kept for a month.

A topic that was made again counts its offsets from 0: a checkpoint that goes on would pass over as many of
its records as the topic before had. Kafka gives each topic an id, so the first table remembers that, too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kquota_pipeline import delta
from kquota_pipeline.tables import RECORDS, USAGE, Tables

_QUERY, _TOPIC_ID = "kquota.ingest.query", "kquota.ingest.topic.id"
_START_ANEW = (
    "name an empty folder and --adopt: everything that the topic still holds is read again, and "
    "`kquota-pipeline maintain` removes what came twice"
)


class ForeignCheckpoint(Exception):
    """Checkpoint and tables do not fit together; the message has the reason and the remedy."""


@dataclass(frozen=True)
class Batch:
    """The identity of an append: the query's id and the number of its batch."""

    query: str
    number: int

    def to_json(self) -> str:
        """Return the form in which Delta's history keeps it."""
        return json.dumps({"kquota.ingest": {"query": self.query, "batch": self.number}})


def require_own_checkpoint(spark: SparkSession, tables: Tables, checkpoint: str, adopt: bool = False) -> None:
    """See that the checkpoint is the one that filled the tables, and is as far as they are.

    With `adopt` a checkpoint that is new may take over: it begins at the oldest record that the topic holds,
    and what comes a second time stays until `maintain` removes it.

    Raises:
        ForeignCheckpoint: it is not.
    """
    owner, own = delta.properties(spark, tables, USAGE).get(_QUERY), _query_of(spark, checkpoint)
    if owner is None:
        return
    if own is None and adopt:
        spark.sql(
            f"ALTER TABLE delta.`{tables.location(USAGE)}` "
            f"UNSET TBLPROPERTIES IF EXISTS ('{_QUERY}', '{_TOPIC_ID}')"
        )
        return
    if own != owner:
        found = "there is no checkpoint" if own is None else f"the checkpoint there is of query {own}"
        raise ForeignCheckpoint(
            f"{tables.root} was filled with the checkpoint of query {owner}, but at {checkpoint} {found}. "
            f"Name or restore the right one; if it is lost, {_START_ANEW}"
        )
    last = delta.last_transaction(spark, tables, RECORDS, owner)  # each batch comes there first
    if last is not None and not _planned(spark, checkpoint, last):
        raise ForeignCheckpoint(
            f"{checkpoint} does not know batch {last}, which is in {tables.root}: it was restored "
            f"from an older copy. Restore the newest one, or {_START_ANEW}"
        )


def require_same_topic(spark: SparkSession, tables: Tables, topic: str, topic_id: str) -> None:
    """See that the topic is the one that filled the tables, by its id.

    Raises:
        ForeignCheckpoint: it is another one, or was made again.
    """
    noted = delta.properties(spark, tables, USAGE).get(_TOPIC_ID)
    if noted not in (None, topic_id):
        raise ForeignCheckpoint(
            f"{tables.root} was filled from a topic with the id {noted}, and {topic} has the id {topic_id}: "
            "it was made again, or is another topic, and the checkpoint would pass over its first records. "
            f"Name the right topic; if it was made again, {_START_ANEW}"
        )


def claim(spark: SparkSession, tables: Tables, query: str, topic_id: str) -> None:
    """Note that the query fills the tables, and from which topic.

    Raises:
        ForeignCheckpoint: another one does.
    """
    noted = delta.properties(spark, tables, USAGE)
    owner = noted.get(_QUERY)
    if owner not in (None, query):
        raise ForeignCheckpoint(
            f"{tables.root} is filled by query {owner} and not by {query}: stop one of the two"
        )
    if owner is None:
        spark.sql(
            f"ALTER TABLE delta.`{tables.location(USAGE)}` "
            f"SET TBLPROPERTIES ('{_QUERY}' = '{query}', '{_TOPIC_ID}' = '{topic_id}')"
        )


def settled_version(spark: SparkSession, tables: Tables, checkpoint: str) -> int:
    """Return the newest version of table `records` whose records are all in the other tables, too.

    A batch that an ingest has begun comes there later: an ingest that runs now, or the next one.

    Raises:
        ForeignCheckpoint: another checkpoint filled the tables, or the log of `records` no longer has the
            version before the batch in progress.
        NotATable: there are no tables at that place, or others, or no ingest has kept records yet.
    """
    for table in (USAGE, RECORDS):
        delta.known(spark, tables, table)
    require_own_checkpoint(spark, tables, checkpoint)
    owner = delta.properties(spark, tables, USAGE).get(_QUERY)
    begun = None if owner is None else delta.last_transaction(spark, tables, RECORDS, owner)
    if begun is None or _lines(spark, f"{checkpoint.rstrip('/')}/commits/{begun}"):
        return delta.newest_version(spark, tables, RECORDS)
    noted = F.get_json_object("userMetadata", "$['kquota.ingest']")
    row = (
        spark.sql(f"DESCRIBE HISTORY delta.`{tables.location(RECORDS)}`")
        .where(F.get_json_object(noted, "$.query") == F.lit(owner))
        .where(F.get_json_object(noted, "$.batch").cast("bigint") == begun)
        .agg(F.max("version").alias("version"))
        .first()
    )
    if row is None or row["version"] is None:
        raise ForeignCheckpoint(
            f"{checkpoint} has not completed batch {begun}, and the log of {tables.location(RECORDS)} no "
            "longer has the version before it: run `kquota-pipeline ingest` first"
        )
    return int(row["version"]) - 1


def _query_of(spark: SparkSession, checkpoint: str) -> str | None:
    """Return the id of the query whose checkpoint it is, or None where there is none."""
    lines = _lines(spark, f"{checkpoint.rstrip('/')}/metadata")
    if not lines:
        return None
    return str(json.loads("".join(lines))["id"])


def _planned(spark: SparkSession, checkpoint: str, batch: int) -> bool:
    return bool(_lines(spark, f"{checkpoint.rstrip('/')}/offsets/{batch}"))


def _lines(spark: SparkSession, uri: str) -> list[str]:
    """Return the lines of a file on whatever file system Spark reads; none where there is no such file."""
    try:
        return [str(row["value"]) for row in spark.read.text(uri).collect()]
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return []
        raise
