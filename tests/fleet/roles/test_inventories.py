"""Programs accept the files that the roles write for the example inventories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from kquota.settings import load
from tests.fleet.roles.plays import NODE, PlayFailed, check_of_problems, run_play
from tests.unit.repository.tree import REPOSITORY

INVENTORIES = sorted((REPOSITORY / "inventories").iterdir())


@pytest.mark.parametrize("inventory", INVENTORIES, ids=lambda path: path.name)
def test_the_agent_accepts_its_configuration(inventory: Path, tmp_path: Path) -> None:
    tasks = [
        # Loads the defaults and variables of the role without running it.
        {"ansible.builtin.import_role": {"name": "kquota_agent", "tasks_from": "service"}, "when": False},
        {
            "ansible.builtin.template": {
                "src": str(REPOSITORY / "roles/kquota_agent/templates/agent.yml.j2"),
                "dest": f"{tmp_path}/{{{{ inventory_hostname }}}}.yml",
            },
            "when": "inventory_hostname in groups['kafka_brokers']",
        },
    ]
    variables = {"vault_kquota_agent_password": "secret", "kquota_agent_secrets_dir": str(tmp_path)}
    run_play(tmp_path, tasks, variables, inventory=str(inventory))
    (tmp_path / "sasl.password").write_text("secret")
    (tmp_path / "sasl.password").chmod(0o640)
    files = sorted(tmp_path.glob("*.yml"))
    assert files
    written = {file.stem: load(file, {}) for file in files}
    for name, settings in written.items():
        assert (
            settings.kafka["bootstrap.servers"].count(":")
            == settings.kafka["bootstrap.servers"].count(",") + 1
        )
        assert settings.mode.value == "observe", name
        assert "secret" not in (tmp_path / f"{name}.yml").read_text("utf-8").replace("kafka_secrets", "")
    if inventory.name == "several-brokers":
        of_a, of_b = written["metal1-a"], written["metal1-b"]
        for key in ("decision_file", "applied_file", "state_dir", "metrics", "broker"):
            assert getattr(of_a, key) != getattr(of_b, key), key
    if inventory.name == "sasl":
        assert written["kafka3.example.org"].limits.volumes
        assert written["kafka1.example.org"].librdkafka()["sasl.password"] == "secret"


SHARED_HOSTS = [
    task
    for task in yaml.safe_load((REPOSITORY / "playbooks/tasks/preflight.yml").read_text("utf-8"))
    if "on one host" in task["name"]
]


def test_two_brokers_on_a_host_cannot_have_the_same_port(tmp_path: Path) -> None:
    inventory = str(REPOSITORY / "inventories/several-brokers")
    run_play(tmp_path, SHARED_HOSTS, {}, inventory=inventory)
    same = {"kquota_agent_metrics_listen": "127.0.0.1:9464"}
    with pytest.raises(PlayFailed, match=r"metal1\.example\.org:22\s+127\.0\.0\.1:9464,\s+metal2"):
        run_play(tmp_path, SHARED_HOSTS, same, inventory=inventory)


def test_a_controller_on_a_broker_s_host_needs_a_name(tmp_path: Path) -> None:
    def check(controller: dict[str, str]) -> None:
        file = tmp_path / "hosts.yml"
        brokers = {"hosts": {"broker-1": {"ansible_host": "metal1"}}}
        controllers = {"hosts": {"controller-1": {"ansible_host": "metal1", **controller}}}
        file.write_text(json.dumps({"kafka_brokers": brokers, "kafka_controllers": controllers}))
        run_play(tmp_path, SHARED_HOSTS, {}, inventory=str(file))

    check({"kquota_instance": "controller"})
    with pytest.raises(PlayFailed, match=r"on\s+one\s+host:\s+metal1:22\s+''\."):
        check({})


def test_a_unit_needs_its_full_name(tmp_path: Path) -> None:
    tasks = check_of_problems("kquota_callback", "preflight_node")
    # systemctl accepts both.
    principals = {"kquota_agent_principals": ["User:agent"], "kquota_broker_principals": ["User:broker"]}
    given = {**principals, "kquota_callback_node": NODE}
    run_play(tmp_path, tasks, {**given, "kquota_callback_broker_unit": "kafka@a.service"})
    with pytest.raises(PlayFailed, match=r"no\s+unit\s+kafka\s+on"):
        run_play(tmp_path, tasks, {**given, "kquota_callback_broker_unit": "kafka"})
