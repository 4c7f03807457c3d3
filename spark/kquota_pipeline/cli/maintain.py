"""`maintain`: the tables' upkeep."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from kquota_pipeline.cli.options import SparkOption, TablesOption, fail, say
from kquota_pipeline.cli.session import command_session
from kquota_pipeline.delta import NotATable
from kquota_pipeline.maintain.upkeep import Upkeep, maintain
from kquota_pipeline.tables import Tables

_DEFAULT = Upkeep()
RetentionOption = Annotated[
    int, typer.Option(min=1, envvar="KQUOTA_PIPELINE_RETENTION_DAYS", help="Days that are kept.")
]
RawRetentionOption = Annotated[
    int,
    typer.Option(
        min=1,
        envvar="KQUOTA_PIPELINE_RAW_RETENTION_DAYS",
        help="Days for which samples are kept, and records as they came. Derived tables stay longer.",
    ),
]
ClosedAfterOption = Annotated[
    float, typer.Option(min=0, help="How long after its end a day is taken for complete.")
]
RETENTION_DAYS, RAW_RETENTION_DAYS = _DEFAULT.retention_days, _DEFAULT.raw_retention_days
CLOSED_AFTER_HOURS = _DEFAULT.closed_after / timedelta(hours=1)


def maintain_command(
    tables: TablesOption,
    retention_days: RetentionOption = RETENTION_DAYS,
    raw_retention_days: RawRetentionOption = RAW_RETENTION_DAYS,
    closed_after_hours: ClosedAfterOption = CLOSED_AFTER_HOURS,
    spark: SparkOption = None,
) -> None:
    """Remove duplicates of closed days, derive the cluster's state per tick, compact, and drop old days."""
    settings = Upkeep(retention_days, raw_retention_days, timedelta(hours=closed_after_hours))
    session = command_session("maintain", spark)
    try:
        done = maintain(session, Tables(tables), datetime.now(UTC), settings, say)
    except NotATable as error:
        fail(str(error))
    finally:
        session.stop()
    typer.echo(done.summary())
