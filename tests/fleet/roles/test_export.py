"""Another role owns server.properties and writes it at each of its runs; ours writes nothing there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import javaproperties
import pytest

from plugins.modules.kquota_node import look_at_unit
from tests.fleet.roles.plays import run_play

THEIRS = Path(__file__).parent / "their_kafka"
OWN = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AGENT = r"User:CN=agent\, first,O=x"


def ours(part: str) -> dict[str, Any]:
    return {"ansible.builtin.include_role": {"name": "kquota_callback", "tasks_from": part, "public": True}}


def theirs() -> list[dict[str, Any]]:
    """Their play, as docs/fleet.md has it."""
    given = {"their_kafka_custom_properties": "{{ kquota_broker_properties }}"}
    return [ours("export"), {"ansible.builtin.include_role": {"name": str(THEIRS)}, "vars": given}]


def save(folder: Path, name: str, value: str) -> dict[str, Any]:
    """Save a value, server.properties, and the times and inodes of the files of both roles."""
    script = """
        cat >"$1.said"
        cp etc/server.properties "$1.properties"
        stat -c '%n %y %i' etc/* >"$1.stat"
    """
    return {
        "ansible.builtin.command": {
            "argv": ["sh", "-c", script, "sh", name],
            "stdin": value,
            "chdir": str(folder),
        }
    }


def stopped(folder: Path, name: str, *parts: str) -> dict[str, Any]:
    """Run parts of our role that end with a sentence, and save it."""
    return {
        "block": [*map(ours, parts), {"ansible.builtin.meta": "end_host"}],
        "rescue": [save(folder, name, "{{ ansible_failed_result.msg }}")],
    }


@pytest.mark.accepts("G19")
def test_each_role_s_run_changes_nothing_of_the_other(tmp_path: Path, plug_in: dict[str, object]) -> None:
    place = tmp_path / "etc"
    place.mkdir()
    variables = {
        **plug_in,
        "kquota_properties": "export",
        "kquota_server_properties": f"{place}/server.properties",
        "kquota_callback_directory": str(place),
        "kquota_callback_agent_principals": [AGENT],
        "kquota_callback_broker_principals": ["User:CN=broker,O=x"],
        "their_kafka_file": f"{place}/server.properties",
        "their_kafka_restarts": f"{place}/restarts",
    }
    # Facts, because the fingerprint depends on the unit.
    started: list[dict[str, Any]] = [
        {
            "ansible.builtin.set_fact": {
                "kquota_callback_unit": look_at_unit("LoadState=loaded", [], None, 0, b""),
            }
        },
        {
            "ansible.builtin.set_fact": {
                "since": "{{ kquota_callback_arrived_at }}",
                "current": "{{ kquota_callback_fingerprint }}",
            }
        },
    ]
    for name, seconds in (("before", -1), ("after", 1)):
        unit = {"started": f"{{{{ since | int + {seconds} }}}}", "started_with": "{{ current }}"}
        started += [
            {"ansible.builtin.set_fact": {"kquota_callback_unit": unit}},
            save(tmp_path, name, "{{ kquota_callback_running_fingerprint == current }}"),
        ]
    configure = ("facts_properties", "configure_properties")
    tasks = [
        # Theirs first, as on a new broker: there are no properties until the node can load the class.
        *theirs(),
        save(tmp_path, "original", "{{ kquota_broker_properties }}"),
        stopped(tmp_path, "offered", *configure),
        *theirs(),
        *map(ours, configure),
        save(tmp_path, "arrived", "{{ kquota_callback_wrapped_authorizer }}"),
        *started,
        *theirs(),
        *map(ours, configure),
        save(tmp_path, "again", ""),
        stopped(tmp_path, "removal", "facts_properties", "remove_properties"),
        *theirs(),
        *map(ours, ("facts_properties", "remove_properties")),
        save(tmp_path, "end", ""),
    ]
    run_play(tmp_path, tasks, variables)

    def said(name: str) -> str:
        return (tmp_path / f"{name}.said").read_text("utf-8").strip()

    def text(name: str) -> str:
        return (tmp_path / f"{name}.properties").read_text("utf-8")

    assert said("original") == "{}"
    assert "client.quota.callback.class must be 'org.kquota.KquotaCallback' and is not set" in said("offered")
    assert f"authorizer.class.name must be 'org.kquota.KquotaAuthorizer' and is '{OWN}'" in said("offered")
    assert f"{place}/broker.properties" in said("offered")
    assert text("offered") == text("original")

    found = javaproperties.loads(text("arrived"))
    assert found["kquota.exempt.principals"] == rf"{AGENT};User:CN=broker,O=x"
    assert found["authorizer.class.name"] == "org.kquota.KquotaAuthorizer"
    assert found["kquota.fence.authorizer.class"] == said("arrived") == OWN
    assert (said("before"), said("after")) == ("False", "True")

    # Not a byte, and no file written again, by either role.
    assert (tmp_path / "again.stat").read_text() == (tmp_path / "arrived.stat").read_text()

    assert "authorizer.class.name, client.quota.callback.class" in said("removal")
    assert f"set authorizer.class.name to {OWN}" in said("removal")
    assert text("removal") == text("arrived")
    assert text("end") == text("original")
    # The first file, the arrival and the removal.
    assert (place / "restarts").read_text().count("restarted") == 3
    assert not (place / "broker.properties").exists()
