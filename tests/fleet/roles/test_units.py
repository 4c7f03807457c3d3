"""The sentence about a unit of Kafka that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleet.roles.plays import NODE, PlayFailed, check_of_problems, run_play

CHECKS = [
    {"ansible.builtin.include_role": {"name": "kquota_callback", "tasks_from": "facts", "public": True}},
    *check_of_problems("kquota_callback", "preflight_node"),
]
PRINCIPALS = {"kquota_agent_principals": ["User:agent"], "kquota_broker_principals": ["User:broker"]}
FILES = "kafka.service enabled enabled\nkafka@.service disabled enabled\n"
UNITS = """\
kafka-exporter.service not-found inactive dead kafka-exporter.service
kafka@one.service loaded active running Kafka one
kafka@two.service loaded active running Kafka two
"""
CASES = {
    "instances": ("kafka.service", FILES, UNITS, "kafka@one.service or kafka@two.service."),
    "another": ("kafka@x.service", FILES, "", "of the unit, kafka.service."),
    "none": ("kafka.service", "", "", "of the unit, which systemctl list-units --all --type=service has."),
}


@pytest.mark.parametrize("case", CASES)
def test_the_units_that_there_are_are_named(case: str, tmp_path: Path) -> None:
    unit, files, units, named = CASES[case]
    (tmp_path / "list-unit-files").write_text(files)
    (tmp_path / "list-units").write_text(units)
    (tmp_path / "show").write_text("LoadState=not-found\n")
    (tmp_path / "server.properties").write_text("node.id=1\n")
    program = tmp_path / "systemctl"
    program.write_text(f'#!/bin/sh\ncat "{tmp_path}/$1"\n')
    program.chmod(0o755)
    variables = {
        **PRINCIPALS,
        "kquota_callback_broker_unit": unit,
        "kquota_server_properties": str(tmp_path / "server.properties"),
    }
    play = [{"environment": {"PATH": f"{tmp_path}:/usr/bin:/bin"}, "block": CHECKS}]
    with pytest.raises(PlayFailed) as failed:
        run_play(tmp_path, play, variables)
    said = " ".join(str(failed.value).replace("\\n", " ").split())
    assert named in said
    assert "kafka@.service" not in said


def test_a_name_without_its_suffix_is_completed(tmp_path: Path) -> None:
    variables = {**PRINCIPALS, "kquota_callback_broker_unit": "kafka", "kquota_callback_node": NODE}
    with pytest.raises(PlayFailed, match=r"the\s+full\s+name\s+of\s+the\s+unit,\s+kafka\.service"):
        run_play(tmp_path, CHECKS[1:], variables)
