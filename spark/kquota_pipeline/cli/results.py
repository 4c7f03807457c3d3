"""How commands print what they found: a table for people, or JSON."""

from __future__ import annotations

import json
import sys
from datetime import date, datetime
from typing import Annotated, Any

import typer
from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table

_ANY_WIDTH = 10_000
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON: a list of objects.")]


def show(frame: DataFrame, title: str, as_json: bool) -> None:
    """Print the rows of a small frame on standard output."""
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    if as_json:
        typer.echo(to_json(rows))
        return
    table = Table(title=title, title_justify="left")
    for name in frame.columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*[_text(row[name]) for name in frame.columns])
    # Whoever reads it through a pipe has a width of his own; folded to a guess, figures can't be read.
    Console(width=None if sys.stdout.isatty() else _ANY_WIDTH).print(table)


def to_json(document: object) -> str:
    """Return a document as JSON; times are written in ISO 8601."""
    return json.dumps(document, indent=1, default=_plain, allow_nan=False)


def _plain(value: object) -> object:
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not written as JSON")


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
