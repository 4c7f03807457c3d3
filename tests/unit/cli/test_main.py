"""The list of commands: by purpose, without loading any, and none is missing or cut."""

from __future__ import annotations

import importlib
import shlex
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from kquota.cli.main import COMMANDS


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_the_list_names_each_command_under_its_purpose_and_loads_none(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(importlib, "import_module")
    listed = CliRunner().invoke(COMMANDS.overview(), arguments).output
    for purpose in COMMANDS.purposes:
        _, _, section = listed.partition(f"{purpose.title}:\n")
        for name, one in purpose.commands.items():
            _, found, rest = section.partition(f"  {name} ")
            assert found, name
            assert rest.split("\n")[0].strip() == one.summary, "it is not cut"
            assert rest.split("\n")[1].strip() == f"$ {one.example}"


def test_each_command_that_is_listed_is_there_as_it_is_listed() -> None:
    whole = typer.main.get_command(COMMANDS.application())
    listed = {name: one for purpose in COMMANDS.purposes for name, one in purpose.commands.items()}
    assert whole.commands.keys() == listed.keys()  # type: ignore[attr-defined]
    for name, one in whole.commands.items():  # type: ignore[attr-defined]
        assert hasattr(one, "commands") == listed[name].is_group
        assert one.help, name


def test_each_example_is_a_call_that_its_command_takes() -> None:
    whole: Any = typer.main.get_command(COMMANDS.application())
    for purpose in COMMANDS.purposes:
        for name, one in purpose.commands.items():
            program, *arguments = shlex.split(one.example)
            assert (program, arguments[0]) == ("kquota", name)
            command = whole
            while hasattr(command, "commands"):
                command = command.commands[arguments.pop(0)]
            command.make_context(name, arguments)
            shown = CliRunner().invoke(COMMANDS.application(name), [name, "--help"]).output
            assert f"Example: {one.example}" in " ".join(shown.split())
