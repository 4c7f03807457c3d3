"""Scope, cordon and protected topics of the agents: in their configuration, and in the first checks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from kquota.settings.load import load_text
from tests.fleet.roles.plays import PlayFailed, run_play
from tests.fleet.roles.test_specifications import checks
from tests.unit.repository.tree import REPOSITORY

PREFLIGHT = yaml.safe_load((REPOSITORY / "playbooks/tasks/preflight.yml").read_text("utf-8"))
FIRST_CHECK = [task for task in PREFLIGHT if "variables of the play" in task["name"]]
WARNING = [task for task in PREFLIGHT if "scope" in task["name"]]
WARNED = "the scope is the cluster on this broker"


def inventory(folder: Path, **brokers: dict[str, object]) -> str:
    """Write an inventory with these brokers and one controller of its own."""
    file = folder / "hosts.yml"
    groups = {"kafka_brokers": {"hosts": brokers}, "kafka_controllers": {"hosts": {"controller": {}}}}
    file.write_text(json.dumps(groups))
    return str(file)


def test_the_agent_s_configuration_names_the_scope_unless_it_is_the_cluster(tmp_path: Path) -> None:
    template = REPOSITORY / "roles/kquota_agent/templates/agent.yml.j2"
    written = {"src": str(template), "dest": f"{tmp_path}/{{{{ inventory_hostname }}}}"}
    tasks = [*checks("kquota_agent", "service"), {"ansible.builtin.template": written}]
    brokers = {
        "unset": {},
        "whole": {"kquota_scope": "cluster", "kquota_cordon": "off"},
        "narrow": {"kquota_scope": "volume", "kquota_cordon": "soft"},
    }
    given = {"kquota_kafka": {"bootstrap.servers": "a:9093"}}
    run_play(tmp_path, tasks, given, inventory=inventory(tmp_path, **brokers))
    found = {name: yaml.safe_load((tmp_path / name).read_text()).get("scope") for name in brokers}
    assert found == {"unset": None, "whole": None, "narrow": "volume"}
    cordons = {name: yaml.safe_load((tmp_path / name).read_text()).get("cordon") for name in brokers}
    assert cordons == {"unset": None, "whole": None, "narrow": "soft"}


def test_a_cordon_that_yaml_reads_as_false_is_none_and_gives_agents_nothing(tmp_path: Path) -> None:
    template = REPOSITORY / "roles/kquota_agent/templates/agent.yml.j2"
    rights = "{{ {'may': kquota_topic_agents_cordon, 'by': kquota_topic_acl_additions | string} | to_json }}"
    tasks = [
        *checks("kquota_agent", "service"),
        *checks("kquota_topic", "remove"),
        {
            "ansible.builtin.template": {
                "src": str(template),
                "dest": f"{tmp_path}/{{{{ inventory_hostname }}}}",
            }
        },
        {
            "ansible.builtin.copy": {
                "content": rights,
                "dest": f"{tmp_path}/{{{{ inventory_hostname }}}}.json",
            }
        },
    ]
    brokers: dict[str, dict[str, object]] = {
        "fleet": {"kquota_cordon": False},
        "role": {"kquota_agent_cordon": False},
        "soft": {"kquota_cordon": "soft"},
    }
    given = {"kquota_kafka": {"bootstrap.servers": "a:9093"}, "kquota_agent_principals": ["User:a"]}
    controllers = {"kquota_topic_brokers": 1, "kquota_tools_host": "fleet"}
    run_play(tmp_path, tasks, {**given, **controllers}, inventory=inventory(tmp_path, **brokers))
    found = {}
    for name in brokers:
        right = json.loads((tmp_path / f"{name}.json").read_text("utf-8"))
        cordon = yaml.safe_load((tmp_path / name).read_text("utf-8")).get("cordon")
        found[name] = (cordon, right["may"], "ALTER_CONFIGS" in right["by"])
    nothing = (None, False, False)
    assert found == {"fleet": nothing, "role": nothing, "soft": ("soft", True, True)}


@pytest.mark.parametrize("value", [True, "hart"])
def test_another_word_for_the_cordon_is_refused_first(value: object, tmp_path: Path) -> None:
    given = {"kquota_cordon": value}
    with pytest.raises(PlayFailed, match=rf"kquota_cordon\s+\('{value}'\)\s+must\s+be\s+off,\s+soft"):
        run_play(tmp_path, FIRST_CHECK, given, inventory=inventory(tmp_path, a={}))


def test_protected_topics_are_in_the_agent_s_configuration(tmp_path: Path) -> None:
    template = REPOSITORY / "roles/kquota_agent/templates/agent.yml.j2"
    written = {"src": str(template), "dest": f"{tmp_path}/{{{{ inventory_hostname }}}}"}
    tasks = [*checks("kquota_agent", "service"), {"ansible.builtin.template": written}]
    protected = ["payments", "audit.*"]
    brokers: dict[str, dict[str, object]] = {"unset": {}, "set": {"kquota_relief_protected": protected}}
    given = {
        "kquota_kafka": {"bootstrap.servers": "a:9093", "security.protocol": "plaintext"},
        "kquota_agent_signing_ca_file": "",
    }
    run_play(tmp_path, tasks, given, inventory=inventory(tmp_path, **brokers))
    texts = {name: (tmp_path / name).read_text("utf-8") for name in brokers}
    found = {name: load_text(text, Path("agent.yml"), {}) for name, text in texts.items()}
    assert found["set"].relief_protected == tuple(protected)
    assert "relief_protected" not in texts["unset"]


def test_a_single_protected_topic_is_no_list(tmp_path: Path) -> None:
    single = {"kquota_agent_relief_protected": {"payments": True}}
    with pytest.raises(PlayFailed, match="kquota_agent_relief_protected"):
        run_play(tmp_path, checks("kquota_agent", "service"), single)


def test_a_misspelt_scope_is_refused(tmp_path: Path) -> None:
    misspelt = {"kquota_scope": "volumes"}
    with pytest.raises(PlayFailed, match=r"kquota_scope\s+\('volumes'\)\s+must\s+be\s+cluster\s+or\s+volume"):
        run_play(tmp_path, FIRST_CHECK, misspelt, inventory=inventory(tmp_path, a={}))
    with pytest.raises(PlayFailed, match="value of kquota_agent_scope must be one of"):
        run_play(tmp_path, checks("kquota_agent", "service"), misspelt)


def test_a_scope_that_needs_the_fence_warns_on_brokers_without_it(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("node.id=1\n")
    facts = {"name": "kquota_callback", "tasks_from": "facts_properties", "public": True}
    tasks = [{"ansible.builtin.include_role": facts}, *WARNING]
    brokers = {
        "fenced": {"kquota_scope": "volume"},
        "bare": {"kquota_scope": "volume", "kquota_fence": False},
        "whole": {"kquota_fence": False},
    }
    given = {"kquota_server_properties": str(tmp_path / "server.properties")}
    said = run_play(tmp_path, tasks, given, inventory=inventory(tmp_path, **brokers))
    assert " ".join(said.split()).count(WARNED) == 1
    assert "On bare, kquota_scope is volume" in " ".join(said.split())
