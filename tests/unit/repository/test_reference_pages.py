"""The reference pages match the code of today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
import yaml

from kquota.cli.main import application
from kquota.daemon.metrics import AgentMetrics
from tests.unit.repository.tree import REPOSITORY
from tools.reference.__main__ import PAGES, main
from tools.reference.commands import leaves
from tools.reference.markdown import table


def page(name: str) -> str:
    return PAGES[name](REPOSITORY)


def test_every_page_of_this_repository_is_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    result = main(["--check"])
    assert result == 0, capsys.readouterr().err


def test_a_page_that_the_code_has_overtaken_is_stale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], tmp_path) == 0
    assert main(["--check"], tmp_path) == 0
    metrics = tmp_path / "metrics.md"
    metrics.write_text(metrics.read_text("utf-8").replace("kquota_state", "kquota_stage"), "utf-8")
    assert main(["--check"], tmp_path) == 1
    assert "metrics.md is stale" in capsys.readouterr().err


def test_every_metric_is_on_its_page() -> None:
    text = page("metrics.md")
    for name in AgentMetrics("0").names():
        family = name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum")
        assert f"| `{family}` |" in text


def test_every_command_is_on_its_page_with_its_options() -> None:
    root = typer.main.get_command(application())
    text = page("command-line.md")
    found = list(leaves(root, root.make_context("kquota", [], resilient_parsing=True)))
    assert len(found) > 15
    for command, context in found:
        section = text.split(f"\n## {context.command_path}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            assert parameter.name == "help" or any(option in section for option in parameter.opts), section


def test_every_role_variable_is_on_its_page() -> None:
    text = page("role-variables.md")
    specifications = sorted((REPOSITORY / "roles").glob("*/meta/argument_specs.yml"))
    assert len(specifications) >= 5
    for path in specifications:
        options = yaml.safe_load(path.read_text("utf-8"))["argument_specs"]["main"]["options"]
        for name in options:
            assert f"| `{name}` |" in text


def test_every_field_of_every_schema_is_on_its_page() -> None:
    text = page("messages.md")
    for path in (REPOSITORY / "schemas").glob("*.schema.json"):
        for name in json.loads(path.read_text("utf-8")).get("properties", {}):
            assert f"`{name}`" in text, f"{path.name}: {name}"


def test_every_broker_property_is_on_its_page() -> None:
    source = (REPOSITORY / "callback/src/main/java/org/kquota/config/KquotaConfig.java").read_text("utf-8")
    text = page("broker-properties.md")
    names = [part.split('"')[0] for part in source.split(' = "kquota.')[1:]]
    assert len(names) > 10
    assert [name for name in names if f"| `kquota.{name}` |" not in text] == []


def test_a_table_keeps_bars_and_lines_in_their_cells() -> None:
    assert table(["a"], [["x|y\nz"]]) == ["| a |", "|---|", "| x\\|y z |", ""]
