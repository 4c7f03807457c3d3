"""The list of commands: by purpose, without loading any, and none is missing or cut."""

from __future__ import annotations

import importlib

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
            assert name in section.partition("$")[0]
            assert one.summary in section, "it is not cut"
        assert all(example in section for example in purpose.examples)


def test_each_command_that_is_listed_is_there_as_it_is_listed() -> None:
    whole = typer.main.get_command(COMMANDS.application())
    listed = {name: one for purpose in COMMANDS.purposes for name, one in purpose.commands.items()}
    assert whole.commands.keys() == listed.keys()  # type: ignore[attr-defined]
    for name, one in whole.commands.items():  # type: ignore[attr-defined]
        assert hasattr(one, "commands") == listed[name].is_group
        assert one.help, name
