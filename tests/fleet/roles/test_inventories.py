"""What the roles write for the example inventories is taken by the programs that read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from kquota.settings import load
from tests.fleet.roles.plays import PlayFailed, run_play
from tests.unit.repository.tree import REPOSITORY

INVENTORIES = sorted((REPOSITORY / "inventories").iterdir())


@pytest.mark.parametrize("inventory", INVENTORIES, ids=lambda path: path.name)
def test_the_agent_takes_its_configuration(inventory: Path, tmp_path: Path) -> None:
    tasks = [
        # Makes the role's defaults and variables known, and runs nothing of it.
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
    if "share a host" in task["name"]
]


def test_two_brokers_of_a_host_can_not_have_one_port(tmp_path: Path) -> None:
    inventory = str(REPOSITORY / "inventories/several-brokers")
    run_play(tmp_path, SHARED_HOSTS, {}, inventory=inventory)
    same = {"kquota_agent_metrics_listen": "127.0.0.1:9464"}
    with pytest.raises(PlayFailed, match=r"metal1\.example\.org:22\s+127\.0\.0\.1:9464,\s+metal2"):
        run_play(tmp_path, SHARED_HOSTS, same, inventory=inventory)


def test_a_controller_beside_a_broker_has_a_name_of_its_own(tmp_path: Path) -> None:
    def check(controller: dict[str, str]) -> None:
        file = tmp_path / "hosts.yml"
        brokers = {"hosts": {"broker-1": {"ansible_host": "metal1"}}}
        controllers = {"hosts": {"controller-1": {"ansible_host": "metal1", **controller}}}
        file.write_text(json.dumps({"kafka_brokers": brokers, "kafka_controllers": controllers}))
        run_play(tmp_path, SHARED_HOSTS, {}, inventory=str(file))

    check({"kquota_instance": "controller"})
    with pytest.raises(PlayFailed, match=r"on\s+one\s+host:\s+metal1:22\s+''\."):
        check({})


def test_a_unit_is_named_in_full(tmp_path: Path) -> None:
    text = (REPOSITORY / "roles/kquota_callback/tasks/preflight_node.yml").read_text("utf-8")
    tasks = [task for task in yaml.safe_load(text) if "The unit is there" in task["name"]]
    # systemctl takes either.
    given = {"kquota_callback_unit_show": {"stdout": "LoadState=loaded\nActiveState=active"}}
    run_play(tmp_path, tasks, {**given, "kquota_callback_broker_unit": "kafka@a.service"})
    with pytest.raises(PlayFailed, match=r"no\s+unit\s+kafka\s+on"):
        run_play(tmp_path, tasks, {**given, "kquota_callback_broker_unit": "kafka"})
