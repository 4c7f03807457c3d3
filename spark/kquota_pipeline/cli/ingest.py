"""`ingest`: from the history topic into the tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import javaproperties
import typer

from kquota_pipeline.cli.maintain import (
    CLOSED_AFTER_HOURS,
    RAW_RETENTION_DAYS,
    RETENTION_DAYS,
    ClosedAfterOption,
    RawRetentionOption,
    RetentionOption,
)
from kquota_pipeline.cli.options import CheckpointOption, SparkOption, TablesOption, fail, say
from kquota_pipeline.cli.session import command_session
from kquota_pipeline.delta import NotATable
from kquota_pipeline.ingest.lineage import ForeignCheckpoint
from kquota_pipeline.ingest.stream import IngestFailed, Source, ingest
from kquota_pipeline.maintain.upkeep import Upkeep, maintain
from kquota_pipeline.tables import Tables

# Spark sets these itself: which records are read, and when, is the checkpoint's business.
_SPARK_SETS = {"bootstrap.servers", "group.id", "auto.offset.reset", "enable.auto.commit"}
# Spark refuses these: they would change what it reads.
_REFUSED = {"key.deserializer", "value.deserializer", "interceptor.classes"}


def ingest_command(
    tables: TablesOption,
    checkpoint: CheckpointOption,
    bootstrap_servers: Annotated[
        str, typer.Option(envvar="KQUOTA_PIPELINE_BOOTSTRAP_SERVERS", help="The Kafka brokers, HOST:PORT,…")
    ],
    kafka_properties: Annotated[
        Path | None,
        typer.Option(
            envvar="KQUOTA_PIPELINE_KAFKA_PROPERTIES",
            help="Properties file of a Java Kafka client: security.protocol, ssl.keystore.location, …",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    topic: Annotated[
        str, typer.Option(envvar="KQUOTA_PIPELINE_TOPIC", help="The history topic.")
    ] = "__kquota_history",
    max_records_per_batch: Annotated[
        int, typer.Option(min=1, help="How many records are appended at once.")
    ] = 200_000,
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt",
            help="The tables' checkpoint is lost: go on with a new one, from the topic's beginning.",
        ),
    ] = False,
    accept_gaps: Annotated[
        bool,
        typer.Option(
            "--accept-gaps", help="Go on although the topic has dropped records that were never read."
        ),
    ] = False,
    maintain_too: Annotated[
        bool,
        typer.Option(
            "--maintain",
            help="Then run maintain in the same session, also after an ingest that failed.",
        ),
    ] = False,
    retention_days: RetentionOption = RETENTION_DAYS,
    raw_retention_days: RawRetentionOption = RAW_RETENTION_DAYS,
    closed_after_hours: ClosedAfterOption = CLOSED_AFTER_HOURS,
    spark: SparkOption = None,
) -> None:
    """Append new records of the history topic to the tables, each record once, and end."""
    source = Source(
        bootstrap_servers=bootstrap_servers,
        topic=topic,
        options=_client_properties(kafka_properties),
        max_records_per_batch=max_records_per_batch,
        accept_gaps=accept_gaps,
    )
    settings = Upkeep(retention_days, raw_retention_days, timedelta(hours=closed_after_hours))
    session = command_session("ingest", spark)
    problems = []
    try:
        try:
            typer.echo(ingest(session, source, Tables(tables), checkpoint, say, adopt).summary())
        except (ForeignCheckpoint, NotATable, IngestFailed) as error:
            problems.append(str(error))
        if maintain_too:
            try:
                typer.echo(maintain(session, Tables(tables), datetime.now(UTC), settings, say).summary())
            except NotATable as error:
                problems.append(str(error))
    finally:
        session.stop()
    if problems:
        fail("; ".join(problems))


def _client_properties(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        properties: dict[str, str] = javaproperties.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        fail(f"{path}: {error}")
    for key in properties:
        # Spark does not distinguish capitals.
        if key.lower() in _REFUSED:
            fail(
                f"{path}: {key}: remove it: records are read as bytes, as they are. Allowed is what says how "
                "a Kafka client reaches the brokers: security.protocol, ssl.…, sasl.…, …"
            )
    return {key: value for key, value in properties.items() if key.lower() not in _SPARK_SETS}
