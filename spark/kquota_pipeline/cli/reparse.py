"""`reparse`: the rows of some days again, from the records as they came."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from kquota_pipeline.cli.options import CheckpointOption, SparkOption, TablesOption, day_named, fail, say
from kquota_pipeline.cli.session import command_session
from kquota_pipeline.delta import NotATable
from kquota_pipeline.ingest.lineage import ForeignCheckpoint, settled_version
from kquota_pipeline.ingest.reparse import reparse
from kquota_pipeline.tables import FROM_HISTORY, Tables


def reparse_command(
    tables: TablesOption,
    checkpoint: CheckpointOption,
    first: Annotated[
        str, typer.Option("--from", metavar="DAY", help="The first UTC day: YYYY-MM-DD, or 30d ago.")
    ],
    last: Annotated[str, typer.Option("--to", metavar="DAY", help="The last one; 0d is today.")] = "0d",
    only: Annotated[
        list[str] | None,
        typer.Option("--table", metavar="NAME", help="This table alone; may be given several times."),
    ] = None,
    spark: SparkOption = None,
) -> None:
    """Make the rows of these days again, from the records as they came: after an upgrade that knows more of
    them. An ingest may run at the same time.
    """
    today = datetime.now(UTC).date()
    days = day_named(first, today, "--from"), day_named(last, today, "--to")
    names = {table.name: table for table in FROM_HISTORY}
    if unknown := [name for name in only or [] if name not in names]:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(names)}", param_hint="--table")
    session = command_session("reparse", spark)
    try:
        version = settled_version(session, Tables(tables), checkpoint)
        count = reparse(session, Tables(tables), *days, version, [names[name] for name in only or names], say)
    except (ForeignCheckpoint, NotATable) as error:
        fail(str(error))
    finally:
        session.stop()
    typer.echo(f"{count:,} records of {days[0]} to {days[1]} parsed again")
