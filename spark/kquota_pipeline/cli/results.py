"""How commands print what they found: a table for people, or JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from types import NoneType
from typing import Annotated, Any

import typer
from pyspark.sql import DataFrame
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from kquota_pipeline.cli.options import readable
from kquota_pipeline.report.figures import duration, known, moment_of, percent, rate, size

_ANY_WIDTH = 10_000
# Figures are shown with these units, which their headings need not repeat.
_UNIT = re.compile("_(bytes|bytes_per_second|seconds|tick)$")
_WORDS = {
    "bytes": size,
    "bytes_per_second": rate,
    "_ratio": percent,
    "_seconds": duration,
    "_tick": moment_of,
}
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON: a list of objects.")]


def show(frame: DataFrame, title: str, as_json: bool) -> None:
    """Print the rows of a small frame on standard output."""
    rows = rows_of(frame)
    if as_json:
        typer.echo(to_json(rows))
        return
    console = console_for_people()
    console.print(table_of(frame.columns, rows, title, console))


def console_for_people() -> Console:
    """Return standard output as tables are printed there.

    A reader through a pipe has a width of its own; folded to a guess, figures can't be read.
    """
    return Console(width=None if sys.stdout.isatty() else _ANY_WIDTH)


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a small frame."""
    return [row.asDict(recursive=True) for row in frame.collect()]


def table_of(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    title: str,
    console: Console,
    figures: Collection[str] = (),
) -> Table:
    """Return a table for people that is to be printed there; `figures` are columns of texts with figures.

    A cluster that is the same in all rows is in the title alone. If the table would be too wide, each word of
    a heading has a line of its own, so that no figure is broken.
    """
    clusters = {row["cluster_id"] for row in rows} if "cluster_id" in columns else set()
    if len(clusters) == 1:
        title = f"{title}: cluster {clusters.pop()}"
        columns = [name for name in columns if name != "cluster_id"]
    for between_words in (" ", "\n"):
        table = Table(
            title=Text(readable(title), style="table.title"),
            title_justify="left",
            box=SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            pad_edge=False,
        )
        for name in columns:
            is_number = name in figures or all(isinstance(row[name], (int, float, NoneType)) for row in rows)
            heading = _UNIT.sub("", name).replace("_", between_words)
            table.add_column(heading, overflow="fold", justify="right" if is_number else "left")
        for row in rows:
            table.add_row(*[Text(readable(_text(name, row[name]))) for name in columns])
        if (
            Measurement.get(console, console.options.update(max_width=_ANY_WIDTH), table).maximum
            <= console.width
        ):
            break
    return table


def to_json(document: object) -> str:
    """Return a document as JSON; times are written in ISO 8601."""
    return json.dumps(document, indent=1, default=_plain, allow_nan=False)


def _plain(value: object) -> object:
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not written as JSON")


def _text(column: str, value: Any) -> str:
    """Return a value in the words that suit the unit in its column's name."""
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    if not isinstance(value, (int, float)):
        return str(value)
    for ending, words in _WORDS.items():
        if column.endswith(ending):
            return known(value, words)
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
