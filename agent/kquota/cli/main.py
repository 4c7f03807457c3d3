"""Entry point of the command ``kquota``."""

from __future__ import annotations

from typing import Annotated

import typer

import kquota
from kquota.cli.decide import decide
from kquota.cli.run import run

app = typer.Typer(
    name="kquota",
    help="Keeps the disks of an Apache Kafka cluster from running full.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kquota {kquota.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Keep the disks of an Apache Kafka cluster from running full."""


app.command()(run)
app.command()(decide)


def main() -> None:
    """Run the command line."""
    app()
