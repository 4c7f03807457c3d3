"""The commands of ``kquota-pipeline``; each loads only itself."""

from __future__ import annotations

import importlib
import sys
from typing import Annotated, Any

import typer

import kquota

_COMMANDS = {
    "ingest": "kquota_pipeline.cli.ingest:ingest_command",
    "maintain": "kquota_pipeline.cli.maintain:maintain_command",
    **{
        name: f"kquota_pipeline.cli.analysis:{name}"
        for name in ("forecast", "skew", "accounting", "backtest", "recommend", "report")
    },
    "demo": "kquota_pipeline.cli.demo:demo",
    "jars": "kquota_pipeline.cli.deployment:jars",
    "archive": "kquota_pipeline.cli.deployment:archive",
}


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kquota-pipeline {kquota.__version__}")
        raise typer.Exit


def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Work on the history of a kquota cluster, on Spark."""


def application(command: str | None = None) -> typer.Typer:
    """Return the command line: all of it, or only what running ``command`` needs."""
    app = typer.Typer(
        name="kquota-pipeline",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_options)
    for name, place in _COMMANDS.items():
        if command in (None, name):
            app.command(name)(_load(place))
    return app


def run() -> None:
    """Run the command that the arguments name."""
    command = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] in _COMMANDS else None
    application(command)()


def _load(place: str) -> Any:
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)
