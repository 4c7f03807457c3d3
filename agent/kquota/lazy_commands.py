"""A command line whose commands are loaded one at a time: that of ``kquota`` and that of ``kquota-pipeline``.

The agent and the tools of operators start hundreds of times a day; each command loads only itself, and the
list of them loads none.
"""

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import kquota


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or a group of commands: its place, ``module:name``, a line about it, and an example."""

    place: str
    summary: str
    example: str
    is_group: bool = False


@dataclass(frozen=True, slots=True)
class Purpose:
    """Commands, by name, that serve one purpose."""

    title: str
    commands: Mapping[str, Command]


@dataclass(frozen=True, slots=True)
class LazyCommands:
    """A program with its commands."""

    program: str
    help: str
    purposes: Sequence[Purpose]

    def application(self, command: str | None = None) -> typer.Typer:
        """Return the command line: all of it, or only what running ``command`` needs."""
        app = self._empty()
        for name, one in self._commands().items():
            if command not in (None, name):
                continue
            epilog = f"Example: {one.example}"
            if one.is_group:
                app.add_typer(_load(one.place), name=name, epilog=epilog)
            else:
                app.command(name, epilog=epilog)(_load(one.place))
        return app

    def overview(self) -> typer.Typer:
        """Return a command line that lists all commands, by purpose, and has none."""
        app = self._empty(_by_purpose(self.purposes))
        for name, one in self._commands().items():
            app.command(name, help=one.summary)(lambda: None)
        return app

    def run(self) -> None:
        """Run the command that the arguments name."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # a path may have letters that the locale can't write
                stream.reconfigure(errors="backslashreplace")
        named = sys.argv[1] if len(sys.argv) > 1 else None
        if named in self._commands():
            app = self.application(named)
        else:
            completes = any(name.endswith("_COMPLETE") for name in os.environ)
            app = self.application() if completes else self.overview()
        app(prog_name=self.program)

    def _commands(self) -> Mapping[str, Command]:
        return {name: one for purpose in self.purposes for name, one in purpose.commands.items()}

    def _empty(self, cls: type[TyperGroup] = TyperGroup) -> typer.Typer:
        app = typer.Typer(
            name=self.program,
            cls=cls,
            no_args_is_help=True,
            add_completion=True,
            pretty_exceptions_enable=False,
            rich_markup_mode=None,
        )
        app.callback(help=self.help)(self._options())
        return app

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


def _by_purpose(purposes: Sequence[Purpose]) -> type[TyperGroup]:
    class ByPurpose(TyperGroup):
        def format_commands(self, _context: Any, formatter: Any) -> None:
            width = max(len(name) for purpose in purposes for name in purpose.commands)
            for purpose in purposes:
                with formatter.section(purpose.title):
                    for name, one in purpose.commands.items():
                        formatter.write(f"  {name:<{width}}  {one.summary}\n")
                        formatter.write(f"  {'':<{width}}  $ {one.example}\n")

    return ByPurpose
