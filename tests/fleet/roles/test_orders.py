"""The topic of orders by the roles: its settings and ACLs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kquota.kafka.topics import ORDERS_TOPIC, orders_topic
from tests.fleet.roles.plays import PlayFailed, run_tasks
from tests.fleet.roles.test_permissions import kafka, listing

AGENT, OPERATOR = "User:CN=kquota-agent,O=kquota", "User:CN=operator,O=example"
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
