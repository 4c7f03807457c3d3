"""The topic of orders by the roles: its settings and ACLs, and the end of orders on the usage topic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kquota.kafka.topics import ORDERS_TOPIC, orders_topic
from kquota.settings.load import load_text
from tests.fleet.roles.plays import PlayFailed, run_play, run_tasks
from tests.fleet.roles.test_permissions import kafka, listing
from tests.fleet.roles.test_scope import inventory
from tests.fleet.roles.test_specifications import checks
from tests.unit.repository.tree import REPOSITORY

AGENT, OPERATOR = "User:CN=kquota-agent,O=kquota", "User:CN=operator,O=example"
MOVE = {"ansible.builtin.import_tasks": str(REPOSITORY / "playbooks/tasks/move_orders.yml")}
CONFIGURE = yaml.safe_load((REPOSITORY / "roles/kquota_agent/tasks/configure_file.yml").read_text("utf-8"))
UNKNOWN = "UnknownTopicOrPartitionException"


def command(path: Path, script: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def cluster(folder: Path, described: str, code: int) -> dict[str, object]:
    """Variables with tools of Kafka that note their arguments; the description is that of each topic."""
    variables = {**kafka(folder, ""), "kquota_operator_principals": [OPERATOR]}
    note = f'echo "$(basename $0) $*" >>{folder}/asked'
    (folder / "described").write_text(described)
    for name in ("topics", "acls", "configs"):
        answer = {"configs": f"cat {folder}/described; exit {code}", "acls": f"cat {folder}/answer"}
        command(folder / f"kafka/bin/kafka-{name}.sh", f"{note}\n{answer.get(name, '')}")
    return variables


def asked(folder: Path, *parts: str) -> list[list[str]]:
    """The words of each noted call that contains these parts."""
    lines = (folder / "asked").read_text("utf-8").splitlines()
    return [line.split() for line in lines if all(f" {part} " in f" {line} " for part in parts)]


def allowed(folder: Path) -> dict[str, set[str]]:
    """The operations on the orders topic that ACLs were added for, by principal."""
    return {
        words[words.index("--allow-principal") + 1]: {
            word.partition("=")[2] for word in words if word.startswith("--operation=")
        }
        for words in asked(folder, "--add", ORDERS_TOPIC)
    }


def test_the_orders_topic_is_made_as_an_agent_makes_it_and_operators_alone_may_write(tmp_path: Path) -> None:
    assert run_tasks(tmp_path, [("kquota_topic", "main")], cluster(tmp_path, UNKNOWN, 1)) > 0
    (create,) = asked(tmp_path, "--create", ORDERS_TOPIC)
    assert create[create.index("--partitions") + 1] == "1"
    settings = dict(word.removeprefix("--config=").split("=") for word in create if "--config=" in word)
    assert settings == dict(orders_topic().settings)
    assert allowed(tmp_path) == {
        AGENT: {"Read", "DescribeConfigs", "Create"},
        OPERATOR: {"Read", "Write"},
    }


def test_an_operator_who_may_not_give_orders_may_not_apply_relief_plans(tmp_path: Path) -> None:
    variables = {**cluster(tmp_path, UNKNOWN, 1), "kquota_relief_principals": [OPERATOR, AGENT]}
    with pytest.raises(PlayFailed, match=rf"has\s+{AGENT},\s+and\s+kquota_operator_principals\s+does\s+not"):
        run_tasks(tmp_path, [("kquota_topic", "preflight"), ("kquota_topic", "configure_acls")], variables)
    assert asked(tmp_path, "--add") == []


def test_what_differs_of_an_orders_topic_is_changed_and_what_is_there_is_left(tmp_path: Path) -> None:
    present = {**orders_topic().settings, "delete.retention.ms": "86400000"}
    described = "\n".join(
        f"  {name}={value} sensitive=false synonyms={{}}" for name, value in present.items()
    )
    variables = cluster(tmp_path, described, 0)
    entries = (f"{AGENT} * READ", f"{AGENT} * DESCRIBE_CONFIGS", f"{OPERATOR} * READ")
    (tmp_path / "answer").write_text(listing(("TOPIC", ORDERS_TOPIC, "LITERAL", entries)))
    assert run_tasks(
        tmp_path, [("kquota_topic", "main")], {**variables, "kquota_agents_create_topics": False}
    )
    assert asked(tmp_path, "--create") == []
    (altered,) = asked(tmp_path, "--alter", ORDERS_TOPIC)
    assert altered[altered.index("--add-config") + 1 :] == ["delete.retention.ms=2678400000"]
    assert allowed(tmp_path) == {OPERATOR: {"Write"}}


# By host: variables, the present configuration of the agent, and if orders on the usage topic then count.
STEPS: dict[str, tuple[dict[str, object], str | None, bool]] = {
    "new": ({}, None, True),
    "of-a-former-version": ({}, "mode: enforce\ntopics:\n", True),
    "without-orders": ({}, "topics: {orders: }\n", True),
    "on-the-way": ({}, "topics: {orders: {also_from_usage_topic: true}}\n", True),
    "last": ({"kquota_agent_last_step": True}, "mode: enforce\n", False),
    "there": ({}, "topics: {orders: {also_from_usage_topic: false}}\n", False),
    "there-signed": (
        {"kquota_signing": "required"},
        "topics: {orders: {also_from_usage_topic: no}}\n",
        False,
    ),
    "kept": (
        {"kquota_agent_last_step": True, "kquota_orders_from_usage_topic": True},
        "mode: enforce\n",
        True,
    ),
    "back": (
        {"kquota_orders_from_usage_topic": "true"},
        "topics: {orders: {also_from_usage_topic: false}}\n",
        True,
    ),
}


def test_orders_on_the_usage_topic_count_until_the_last_step_and_never_again(tmp_path: Path) -> None:
    """The role's own tasks read the file, and decide."""
    read, decide, _ = CONFIGURE
    template = REPOSITORY / "roles/kquota_agent/templates/agent.yml.j2"
    rendered = {"text": f"{{{{ lookup('ansible.builtin.template', '{template}') }}}}"}
    of_all = "dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'text')))"
    tasks = [
        checks("kquota_agent", "service")[0],
        read,
        decide,
        {"ansible.builtin.set_fact": rendered},
        {
            "ansible.builtin.copy": {"content": f"{{{{ {of_all} | to_json }}}}", "dest": f"{tmp_path}/texts"},
            "run_once": True,
        },
    ]
    brokers = {name: variables for name, (variables, _, _) in STEPS.items()}
    for name, (_, present, _) in STEPS.items():
        if present is not None:
            (tmp_path / f"{name}.yml").write_text(present)
    client = {
        "bootstrap.servers": "a:9093",
        "ssl.ca.location": "/etc/ca.pem",
        "ssl.certificate.location": "/etc/agent.pem",
        "ssl.key.location": "/etc/agent.key",
    }
    given = {
        "kquota_kafka": client,
        "kquota_orders_topic": "orders-of-ours",
        "kquota_agent_config_file": f"{tmp_path}/{{{{ inventory_hostname }}}}.yml",
    }
    run_play(tmp_path, tasks, given, inventory=inventory(tmp_path, **brokers))
    texts = json.loads((tmp_path / "texts").read_text("utf-8"))
    found = {name: load_text(texts[name], Path("agent.yml"), {}).topics.orders for name in STEPS}
    assert {each.name for each in found.values()} == {"orders-of-ours"}
    assert {name: each.also_from_usage_topic for name, each in found.items()} == {
        name: counts for name, (_, _, counts) in STEPS.items()
    }


def test_orders_are_moved_before_the_step_that_ends_them_on_the_usage_topic() -> None:
    plan = yaml.safe_load((REPOSITORY / "playbooks/tasks/demand_signatures.yml").read_text("utf-8"))
    files = [task.get("ansible.builtin.include_tasks") for task in plan]
    (last,) = (number for number, task in enumerate(plan) if "ansible.builtin.include_role" in task)
    assert files.index("move_orders.yml") < last


MOVED = "echo the order hold is moved"


def move(folder: Path, script: str, *options: str, given: tuple[dict[str, Any], ...] = ({},)) -> list[str]:
    """Run the task on two brokers with a command that notes its arguments; return what it noted.

    `given`: variables of the task, which runs once for each; then once more after the last step.
    """
    command(folder / "bin/kquota", f'echo "$*" >>{folder}/noted\n{script}')
    within = {"PATH": f"{folder}/bin:{{{{ lookup('ansible.builtin.env', 'PATH') }}}}"}
    tasks: list[dict[str, Any]] = [{"block": [MOVE], "environment": within, "vars": each} for each in given]
    done = {"ansible.builtin.set_fact": {"kquota_agent_orders_moved_before": True}}
    hosts = {
        "first": {"kquota_agent_orders_moved_before": True},
        "second": {"kquota_agent_orders_moved_before": False},
    }
    (folder / "hosts.json").write_text(json.dumps({"kafka_brokers": {"hosts": hosts}}))
    (folder / "noted").write_text("")
    try:
        run_play(folder, [*tasks, done, tasks[0]], {}, *options, inventory=str(folder / "hosts.json"))
    finally:
        noted = (folder / "noted").read_text("utf-8").splitlines()
    return noted


def test_orders_are_moved_once_for_the_cluster_until_they_end_on_the_usage_topic(tmp_path: Path) -> None:
    operator = {"kquota_instance": "b1", "kquota_operator_config": "/etc/kafka/operator.properties"}
    assert move(tmp_path, MOVED, given=({}, operator, {"kquota_orders_from_usage_topic": "yes"})) == [
        "orders move --config /etc/kquota/agent.yml",
        "orders move --config /etc/kquota/b1.yml --command-config /etc/kafka/operator.properties",
    ]


@pytest.mark.parametrize("options", [("--limit", "second"), ("--check",)], ids=["some brokers", "check mode"])
def test_nothing_is_moved(options: tuple[str, ...], tmp_path: Path) -> None:
    assert move(tmp_path, MOVED, *options) == []


def test_without_an_operators_credentials_the_play_ends_before_the_last_step(tmp_path: Path) -> None:
    """The command says so with 78, which another try does not change."""
    refused = "echo /etc/kquota/operator.properties does not exist >&2; exit 78"
    with pytest.raises(PlayFailed, match=r"operator\.properties does not exist"):
        move(tmp_path, refused)
    assert len((tmp_path / "noted").read_text("utf-8").splitlines()) == 1
