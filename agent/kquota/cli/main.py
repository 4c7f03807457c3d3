"""Entry point of the command ``kquota``."""

from __future__ import annotations

import importlib
import sys
from typing import Annotated, Any

import typer

import kquota

# The agent and the tools of operators start hundreds of times a day: each command loads only itself.
_COMMANDS = {
    "run": "kquota.cli.run:run",
    "status": "kquota.cli.status:status",
    "explain": "kquota.cli.explain:explain",
    "check": "kquota.cli.check:check",
    "top": "kquota.cli.top:top",
    "decision": "kquota.cli.local:decision",
    "volumes": "kquota.cli.local:volumes",
    "decide": "kquota.cli.decide:decide",
    "quarantine": "kquota.cli.orders:quarantine",
    "maintenance": "kquota.cli.orders:maintenance",
    "decommission": "kquota.cli.orders:decommission",
    "demo": "kquota.cli.demo:demo",
    "playground": "kquota.cli.demo:playground",
}
_GROUPS = {
    "config": "kquota.cli.local:config_app",
    "hold": "kquota.cli.orders:hold_app",
    "topics": "kquota.cli.topics:topics_app",
}


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kquota {kquota.__version__}")
        raise typer.Exit


def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Keep the disks of an Apache Kafka cluster from running full."""


def application(command: str | None = None) -> typer.Typer:
    """Return the command line: all of it, or only what running ``command`` needs."""
    app = typer.Typer(
        name="kquota",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_options)
    for name, place in _COMMANDS.items():
        if command in (None, name):
            app.command(name)(_load(place))
    for name, place in _GROUPS.items():
        if command in (None, name):
            app.add_typer(_load(place), name=name)
    return app


def main() -> None:
    """Run the command line."""
    named = sys.argv[1] if len(sys.argv) > 1 else None
    known = named in _COMMANDS or named in _GROUPS
    application(named if known else None)(prog_name="kquota")


def _load(place: str) -> Any:
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)
