"""The inputs of `make demo` to the hosts' tool and the inventory, and its reports about its steps."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from testbed.demo.hosts_stage import (
    NotSetUp,
    data_paths,
    host_specs,
    inventory_settings,
    require_what_make_makes,
    teller,
)
from testbed.demo.plan import Plan
from testbed.demo.steps import Steps
from testbed.loopback.volumes import MIB


def test_each_host_has_the_volumes_of_the_plan_and_one_for_metadata() -> None:
    plan = Plan()
    specs = host_specs(plan, "trixie", Path("/jars"))

    assert [spec.name for spec in specs] == ["broker-1", "broker-2", "broker-3"]
    for broker_id, spec in enumerate(specs, start=1):
        sizes = {volume.path: volume.size_mebibytes * MIB for volume in spec.volumes}
        assert [sizes[path] for path in data_paths(spec)] == [
            volume.size_bytes for volume in plan.volumes[broker_id]
        ]
        assert set(sizes) - set(data_paths(spec)) == {"/data/metadata"}
        assert spec.shows == {"/opt/kafka/libs": Path("/jars")}


def test_the_inventory_has_the_limits_the_scope_and_the_log_dirs_of_the_plan() -> None:
    plan = Plan()
    settings = inventory_settings(plan, host_specs(plan, "trixie", Path("/jars"))[0])

    assert settings["kafka_log_dirs"] == ["/data/disk-1/kafka", "/data/disk-2/kafka"]
    assert settings["kafka_properties"] == plan.broker_properties
    assert settings["kquota_scope"] == "volume"
    assert settings["kquota_agent_limits"] == {
        "hard": {"type": "MinFreePercentage", "level": 20},
        "soft": {"type": "MinFreePercentage", "level": 45},
    }


def told(*, terminal: bool) -> str:
    """The output about one step of a play."""
    text = io.StringIO()
    steps = Steps(Console(file=text, width=80, force_terminal=terminal, highlight=False, markup=False))
    with steps.step("boot [three] hosts") as step:
        tell = teller(step)
        tell("PLAY", "Install the agents")
        tell("TASK", "kquota_agent : " + "a long name " * 20)
    steps.end()
    return text.getvalue()


def test_lines_say_what_begins_and_how_long_it_took() -> None:
    assert [re.sub(r"\d+ s", "N s", line).strip() for line in told(terminal=False).splitlines()] == [
        "boot [three] hosts …",
        "N s  Install the agents",
        "N s  boot [three] hosts",
        "N s  in all",
    ]


def test_a_terminal_shows_the_task_in_one_line_that_goes() -> None:
    shown = told(terminal=True)

    assert "Install the agents" in shown
    *_, last = shown.split("\x1b[2K")  # what is written after the line was erased
    assert "a long name" not in last
    assert "boot [three] hosts" in last


def test_a_step_that_fails_is_not_said_to_be_done() -> None:
    text = io.StringIO()
    steps = Steps(Console(file=text, width=80, highlight=False, markup=False))

    with pytest.raises(ValueError, match="no host"), steps.step("booting"):
        raise ValueError("no host")

    assert text.getvalue() == "booting …\n"


def test_what_make_has_not_made_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("testbed.demo.hosts_stage.ANSIBLE", tmp_path / "ansible-playbook")

    with pytest.raises(NotSetUp, match="run `make deps-fleet`"):
        require_what_make_makes(protected=False)
