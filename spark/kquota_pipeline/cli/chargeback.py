"""`chargeback`: bytes held, written and read by principal, group and topic, over days."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from kquota_pipeline.accounting.attribution import (
    BEFORE_DAYS,
    FIGURES,
    known_ratios,
    or_none,
    owners,
    with_groups,
)
from kquota_pipeline.accounting.job import accounted
from kquota_pipeline.cli.analysis import GroupsOption, read_groups
from kquota_pipeline.cli.options import SparkOption, TablesOption, day_named, fail, readable, say
from kquota_pipeline.cli.results import JsonOption, console_for_people, table_of, to_json
from kquota_pipeline.cli.session import command_session
from kquota_pipeline.delta import NotATable
from kquota_pipeline.maintain.derived import HOLDING_DAYS, WRITING_DAYS, read_derived
from kquota_pipeline.report import figures
from kquota_pipeline.report.writers import name_of, user_name
from kquota_pipeline.tables import Tables

_NAMES = ("group", "user", "client_id", "topic")
# A spreadsheet takes a cell that begins with one of these for a formula. An apostrophe before it is the
# spreadsheet's own mark of a text, so that a name with one gets a second one.
_FORMULA = re.compile(r"^[=+\-@'\t\r\n]")


class By(StrEnum):
    """The kind of rows of the printed table."""

    PRINCIPAL = "principal"
    CLIENT = "client"
    GROUP = "group"
    TOPIC = "topic"


_COLUMNS = {
    By.PRINCIPAL: ["user"],
    By.CLIENT: ["user", "client_id"],
    By.GROUP: ["group"],
    By.TOPIC: ["topic"],
}


def chargeback(
    tables: TablesOption,
    first: Annotated[
        str, typer.Option("--from", metavar="DAY", help="The first UTC day: YYYY-MM-DD, or 30d ago.")
    ] = "30d",
    last: Annotated[str, typer.Option("--to", metavar="DAY", help="The last one; 0d is today.")] = "1d",
    by: Annotated[By, typer.Option("--by", help="The kind of rows of the table.")] = By.PRINCIPAL,
    groups: GroupsOption = None,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", help="Also write a row for each client and topic here.", dir_okay=False),
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", help="The same as a file of Parquet.", dir_okay=False)
    ] = None,
    spark: SparkOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show who held, wrote and read how many bytes in these days: by principal, client, group or topic. Bytes
    of unknown owners are a row of their own.
    """
    today = datetime.now(UTC).date()
    begin, end = day_named(first, today, "--from"), day_named(last, today, "--to")
    if end < begin:
        raise typer.BadParameter(f"{end} is before --from {begin}", param_hint="--to")
    named = {} if groups is None else read_groups(groups)
    session = command_session("chargeback", spark)
    try:
        held, written = (
            read_derived(session, Tables(tables), derived, begin - timedelta(days=BEFORE_DAYS), end)
            for derived in (HOLDING_DAYS, WRITING_DAYS)
        )
    except NotATable as error:
        fail(str(error))
    found = accounted(held, written, begin, end)
    rows = with_groups(found.rows, named)
    _write(rows, csv, parquet)
    sums = owners(rows, ["cluster_id", *_COLUMNS[by]])
    if as_json:
        typer.echo(to_json(_records(sums)))
        return
    _print(sums, f"Chargeback by {by}, {begin} to {end}")
    for name, of_user, of_topic in known_ratios(rows):
        say(
            f"cluster {readable(name)}: {figures.percent(of_user)} of the bytes held have a known principal, "
            f"{figures.percent(of_topic)} a known topic"
        )


def _write(rows: pd.DataFrame, csv: Path | None, parquet: Path | None) -> None:
    if csv is not None:
        named = _named(rows)
        texts = [name for name in ("cluster_id", *_NAMES) if name in named]
        named[texts] = named[texts].replace(_FORMULA, r"'\g<0>", regex=True)
        named.to_csv(csv, index=False)
    if parquet is not None:
        rows.to_parquet(parquet, index=False)
    for path in (csv, parquet):
        if path is not None:
            say(f"{path} is written: {len(rows):,} rows")


def _named(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with words where a name is not known, or a user empty."""
    called = {"user": user_name, "group": user_name}
    return rows.assign(**{name: rows[name].map(called.get(name, name_of)) for name in _NAMES if name in rows})


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(name): or_none(value) if name in FIGURES else value for name, value in row.items()}
        for row in rows.to_dict("records")
    ]


def _print(sums: pd.DataFrame, title: str) -> None:
    shown = _named(sums)
    whole = sums.groupby("cluster_id")["byte_days"].transform("sum")
    shares = (sums["byte_days"] / whole.where(whole > 0, 1.0)).map(figures.percent)
    shown = shown.assign(
        byte_days=[f"{figures.size(size)}\N{NO-BREAK SPACE}d" for size in sums["byte_days"]],
        **{name: [figures.known(size) for size in sums[name]] for name in FIGURES[1:]},
    )
    shown.insert(list(shown.columns).index("byte_days") + 1, "share", shares)
    console = console_for_people()
    shown.columns = [name.removesuffix("_bytes") for name in shown.columns]
    names = list(shown.columns)
    numbers = [name for name in names if name not in {"cluster_id", *_NAMES}]
    records = [{str(name): value for name, value in row.items()} for row in shown.to_dict("records")]
    console.print(table_of(names, records, title, console, numbers))
