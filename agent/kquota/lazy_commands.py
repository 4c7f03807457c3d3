"""A command line whose commands are loaded one at a time: that of ``kquota`` and that of ``kquota-pipeline``.

The agent and the tools of operators start hundreds of times a day; each command loads only itself.
"""

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import TextIOWrapper
from typing import Annotated, Any

import typer

import kquota


@dataclass(frozen=True, slots=True)
class LazyCommands:
    """A program with its commands, and groups of commands, by name; each is a place, ``module:name``."""

    program: str
    help: str
    commands: Mapping[str, str]
    groups: Mapping[str, str] = field(default_factory=dict)

    def application(self, command: str | None = None) -> typer.Typer:
        """Return the command line: all of it, or only what running ``command`` needs."""
        app = typer.Typer(
            name=self.program,
            no_args_is_help=True,
            add_completion=True,
            pretty_exceptions_enable=False,
            rich_markup_mode=None,
        )
        app.callback(help=self.help)(self._options())
        for name, place in self.commands.items():
            if command in (None, name):
                app.command(name)(_load(place))
        for name, place in self.groups.items():
            if command in (None, name):
                app.add_typer(_load(place), name=name)
        return app

    def run(self) -> None:
        """Run the command that the arguments name."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # a path may have letters that the locale can't write
                stream.reconfigure(errors="backslashreplace")
        named = sys.argv[1] if len(sys.argv) > 1 else None
        known = named in self.commands or named in self.groups
        self.application(named if known else None)(prog_name=self.program)

    def _options(self) -> Any:
        def print_version(wanted: bool) -> None:
            if wanted:
                typer.echo(f"{self.program} {kquota.__version__}")
                raise typer.Exit

        # Not postponed, as elsewhere: typer could not find print_version by its name.
        def options(
            _: Annotated[
                bool,
                typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
            ] = False,
        ) -> None:
            pass

        return options


def _load(place: str) -> Any:
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)
