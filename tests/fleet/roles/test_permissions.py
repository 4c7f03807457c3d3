"""Principals that may write to the topics, by the ACLs that Kafka's tool lists on one host."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.fleet.roles.plays import PROGRAMS, PlayFailed, run_play, run_tasks

USAGE, HISTORY, ORDERS = TOPICS = ["__kquota_volume_usage", "__kquota_history", "__kquota_orders"]
PREFLIGHT = {"ansible.builtin.include_role": {"name": "kquota_topic", "tasks_from": "preflight"}}
INVENTORY: dict[str, object] = {
    "kquota_agent_principals": ["User:CN=kquota-agent,O=kquota"],
    "kquota_broker_principals": [
        "User:CN=kafka-broker,O=example",
        "User:CN=node-*,O=example",
        r"User:CN=\*.example.org",
    ],
    "kquota_admin_principals": ["User:admin"],
    "kquota_topic_accepted_writers": ["User:CN=accepted, by us,O=example", "User:CN=as it is-*"],
}

RELIEF: dict[str, object] = {
    "kquota_operator_principals": ["User:CN=jane", "User:CN=joe"],
    "kquota_relief_principals": ["User:CN=jane"],
}


def listing(*resources: tuple[str, str, str, tuple[str, ...]]) -> str:
    """The output of kafka-acls.sh of Kafka 4.1 to 4.3; an entry is `principal host operation [DENY]`."""
    lines = []
    for kind, name, pattern, entries in resources:
        resource = f"ResourcePattern(resourceType={kind}, name={name}, patternType={pattern})"
        lines.append(f"Current ACLs for resource `{resource}`: ")
        for position, entry in enumerate(entries):
            principal, host, operation, *denied = entry.rsplit(" ", 3 if entry.endswith(" DENY") else 2)
            by = f"principal={principal}, host={host}, operation={operation}"
            lines.append(
                f"{' ' if position == 0 else ''}\t({by}, permissionType={denied[0] if denied else 'ALLOW'})"
            )
        lines.append(" ")
    return "\n".join(lines)


# By name: what is listed, and who may write, by which operation on which name, to which topics.
CASES = {
    "ours": (
        listing(
            (
                "TOPIC",
                USAGE,
                "LITERAL",
                (
                    "User:CN=kquota-agent,O=kquota * WRITE",
                    "User:CN=kquota-agent,O=kquota * CREATE",
                    "User:reader * READ",
                    "User:CN=accepted, by us,O=example * ALL",
                ),
            ),
            ("TOPIC", "*", "LITERAL", ("User:admin * ALL", "User:CN=kafka-broker,O=example * ALL")),
            ("CLUSTER", "kafka-cluster", "LITERAL", ("User:app * CREATE", "User:admin * ALTER")),
            ("TOPIC", "orders", "PREFIXED", ("User:app * WRITE",)),
            ("TOPIC", f"{USAGE}_too", "LITERAL", ("User:app * WRITE",)),
            ("TOPIC", f"{USAGE}_", "PREFIXED", ("User:app * WRITE",)),
            ("GROUP", "*", "LITERAL", ("User:app * ALL",)),
        ),
        [],
    ),
    "nothing": ("", []),
    "patterns": (
        listing(
            (
                "TOPIC",
                "*",
                "LITERAL",
                (
                    "User:CN=node-7,O=example * ALL",
                    "User:CN=*.example.org * ALL",
                    "User:CN=node-7,O=other * ALL",
                    "User:CN=node-7,OU=x,O=example * ALL",
                    "User:CN=node-7\\,O=example * ALL",
                    "User:CN=a.example.org * ALL",
                    "User:CN=as it is-* * ALL",
                    "User:CN=as it is-7 * ALL",
                ),
            ),
        ),
        [
            ("User:CN=node-7,O=other", "ALL", "*", TOPICS),
            ("User:CN=node-7,OU=x,O=example", "ALL", "*", TOPICS),
            ("User:CN=node-7\\,O=example", "ALL", "*", TOPICS),
            ("User:CN=a.example.org", "ALL", "*", TOPICS),
            ("User:CN=as it is-7", "ALL", "*", TOPICS),
        ],
    ),
    "literal": (
        listing(("TOPIC", HISTORY, "LITERAL", ("User:a b 10.0.0.7 WRITE",))),
        [("User:a b", "WRITE", HISTORY, [HISTORY])],
    ),
    "any name": (
        listing(("TOPIC", "*", "LITERAL", ("User:* * ALL",))),
        [("User:*", "ALL", "*", TOPICS)],
    ),
    "prefixed": (
        listing(
            ("TOPIC", "__kquota_v", "PREFIXED", ("User:x * DELETE", "User:y * READ")),
            ("TOPIC", "__", "PREFIXED", ("User:z * ALTER_CONFIGS",)),
        ),
        [
            ("User:x", "DELETE", "__kquota_v", [USAGE]),
            ("User:z", "ALTER_CONFIGS", "__", TOPICS),
        ],
    ),
    "the cluster": (
        listing(
            ("CLUSTER", "kafka-cluster", "LITERAL", ("User:x * ALTER", "User:y * ALL", "User:z * DESCRIBE"))
        ),
        [
            ("User:x", "ALTER", "kafka-cluster", TOPICS),
            ("User:y", "ALL", "kafka-cluster", TOPICS),
        ],
    ),
    "denied": (
        listing(
            (
                "TOPIC",
                "*",
                "LITERAL",
                ("User:x * WRITE", "User:y 10.0.0.7 WRITE", "User:z * ALL", "User:w * WRITE"),
            ),
            ("TOPIC", "__kquota", "PREFIXED", ("User:x * WRITE DENY", "User:z * WRITE DENY")),
            ("TOPIC", USAGE, "LITERAL", ("User:y 10.0.0.7 ALL DENY",)),
            ("TOPIC", HISTORY, "LITERAL", ("User:* * WRITE DENY", "User:w 10.0.0.7 WRITE DENY")),
        ),
        [
            # A denial of writing leaves the rest of ALL.
            ("User:z", "ALL", "*", TOPICS),
            ("User:w", "WRITE", "*", [USAGE, ORDERS]),
            ("User:y", "WRITE", "*", [ORDERS]),
        ],
    ),
    "relief": (
        listing(
            (
                "TOPIC",
                "*",
                "LITERAL",
                (
                    "User:CN=jane * DESCRIBE",
                    "User:CN=jane * ALTER_CONFIGS",
                    "User:CN=jane * DELETE",
                    "User:CN=joe * ALTER_CONFIGS",
                ),
            ),
            ("TOPIC", "__", "PREFIXED", ("User:CN=jane * ALTER_CONFIGS",)),
            ("CLUSTER", "kafka-cluster", "LITERAL", ("User:CN=jane * ALTER",)),
        ),
        [
            # Both may write to the orders topic in any case.
            ("User:CN=jane", "DELETE", "*", [USAGE, HISTORY]),
            ("User:CN=joe", "ALTER_CONFIGS", "*", [USAGE, HISTORY]),
            ("User:CN=jane", "ALTER_CONFIGS", "__", [USAGE, HISTORY]),
            ("User:CN=jane", "ALTER", "kafka-cluster", [USAGE, HISTORY]),
        ],
    ),
    "denied elsewhere": (
        listing(
            (
                "TOPIC",
                "*",
                "LITERAL",
                ("User:x * WRITE", "User:y 10.0.0.7 WRITE", "User:y 10.0.0.8 DELETE DENY"),
            ),
            ("TOPIC", "orders", "PREFIXED", ("User:x * WRITE DENY",)),
            ("TOPIC", "__", "PREFIXED", ("User:x 10.0.0.7 WRITE DENY", "User:y * DELETE DENY")),
        ),
        [("User:x", "WRITE", "*", TOPICS), ("User:y", "WRITE", "*", TOPICS)],
    ),
}


def test_every_grant_that_reaches_a_topic_counts_unless_it_is_denied(tmp_path: Path) -> None:
    """One host for each list, in one play."""
    hosts = {f"case-{number}": {"listed": text} for number, (text, _) in enumerate(CASES.values())}
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(json.dumps({"all": {"hosts": hosts}}))
    tasks = [
        {
            "ansible.builtin.include_role": {
                "name": "kquota_topic",
                "tasks_from": "facts",
                "public": True,
            }
        },
        {"ansible.builtin.set_fact": {"kquota_topic_acl_list": {"stdout": "{{ listed }}", "stderr": ""}}},
        {
            "ansible.builtin.copy": {
                "content": "{{ kquota_topic_strangers | to_json }}",
                "dest": f"{tmp_path}/{{{{ inventory_hostname }}}}",
            }
        },
    ]
    run_play(tmp_path, tasks, INVENTORY | RELIEF, inventory=str(inventory))
    found = {
        name: [
            (grant["principal"], grant["operation"], grant["name"], grant["topics"])
            for grant in json.loads((tmp_path / f"case-{number}").read_text("utf-8"))
        ]
        for number, name in enumerate(CASES)
    }
    assert found == {name: strangers for name, (_, strangers) in CASES.items()}


def kafka(folder: Path, answer: str, code: int = 0) -> dict[str, object]:
    """Variables with a kafka-acls.sh that notes who runs it with what, and gives the answer."""
    home = folder / "kafka"
    (home / "bin").mkdir(parents=True)
    (folder / "answer").write_text(answer)
    tool = home / "bin/kafka-acls.sh"
    tool.write_text(f'#!/bin/sh\necho "$@" >>{folder}/asked\ncat {folder}/answer\nexit {code}\n')
    tool.chmod(0o755)
    return {**INVENTORY, "kquota_kafka_home": str(home), "kquota_bootstrap_servers": "a:1"}


def preflight(folder: Path, variables: Mapping[str, object]) -> str:
    """Run the preflight for three hosts."""
    local = {"ansible_connection": "local", "ansible_python_interpreter": str(PROGRAMS / "python")}
    inventory = folder / "hosts.yml"
    hosts: dict[str, object] = {"a": {}, "b": {}, "c": {}}
    inventory.write_text(json.dumps({"kafka_brokers": {"hosts": hosts, "vars": local}}))
    return run_play(folder, [PREFLIGHT], variables, inventory=str(inventory))


def test_the_preflight_names_the_grants_and_how_to_remove_them_and_asks_on_one_host(tmp_path: Path) -> None:
    grant = ("TOPIC", "__", "PREFIXED", ("User:CN=app 1,O=x 10.0.0.7 ALTER_CONFIGS",))
    with pytest.raises(PlayFailed) as failed:
        preflight(tmp_path, kafka(tmp_path, listing(grant)))
    shown = " ".join(str(failed.value).replace("\\n", " ").replace('\\"', '"').split())
    assert (
        "User:CN=app 1,O=x by ALTER_CONFIGS on the prefixed topic __ from host 10.0.0.7"
        f" (reaches {USAGE}, {HISTORY}, {ORDERS}; to remove it: " in shown
    )
    command = shlex.split(shown.partition("to remove it: ")[2].partition(")")[0])
    assert command == [
        f"{tmp_path}/kafka/bin/kafka-acls.sh",
        *("--bootstrap-server", "a:1", "--remove", "--force"),
        *("--allow-principal", "User:CN=app 1,O=x", "--allow-host", "10.0.0.7"),
        *("--operation", "AlterConfigs", "--resource-pattern-type", "prefixed", "--topic", "__"),
    ]
    assert (tmp_path / "asked").read_text("utf-8") == "--bootstrap-server a:1 --list\n"


def test_former_principals_lose_what_the_role_gives_unless_another_list_gives_it(tmp_path: Path) -> None:
    listed = listing(
        (
            "TOPIC",
            USAGE,
            "LITERAL",
            (
                "User:gone * READ",
                "User:gone * WRITE",
                "User:gone * DESCRIBE",
                "User:gone 10.0.0.7 READ",
                "User:gone * CREATE DENY",
                "User:less * READ",
                "User:reader * READ",
            ),
        ),
        ("TOPIC", "*", "LITERAL", ("User:less * ALTER_CONFIGS", "User:gone * DESCRIBE")),
        ("TOPIC", "orders", "LITERAL", ("User:gone * READ",)),
        ("TOPIC", HISTORY, "LITERAL", ("User:agent-1 * WRITE", "User:agent-3 * WRITE")),
        ("GROUP", "kquota-", "PREFIXED", ("User:gone * DESCRIBE",)),
        ("CLUSTER", "kafka-cluster", "LITERAL", ("User:gone * ALTER_CONFIGS", "User:gone * DESCRIBE")),
    )
    variables: dict[str, object] = {
        **kafka(tmp_path, listed),
        "kquota_topic_reader_principals": ["User:less", "User:reader"],
        "kquota_topic_former_principals": ["User:gone", "User:less", "User:agent-*"],
        "kquota_topic_agent_names": [1, 2],
        "kquota_topic_accepted_writers": ["User:agent-3"],
    }
    run_tasks(tmp_path, [("kquota_topic", "preflight"), ("kquota_topic", "configure_acls")], variables)
    begins = "--bootstrap-server a:1 --remove --force --allow-principal "
    asked = (tmp_path / "asked").read_text("utf-8").splitlines()
    assert sorted(line.removeprefix(begins) for line in asked if "--remove" in line) == [
        f"User:agent-1 --resource-pattern-type literal --topic {HISTORY} --operation=Write",
        "User:gone --resource-pattern-type literal --cluster --operation=AlterConfigs",
        "User:gone --resource-pattern-type literal --topic * --operation=Describe",
        f"User:gone --resource-pattern-type literal --topic {USAGE} --operation=Read --operation=Write",
        "User:gone --resource-pattern-type prefixed --group kquota- --operation=Describe",
        "User:less --resource-pattern-type literal --topic * --operation=AlterConfigs",
    ]


def test_other_permissions_of_a_former_principal_are_still_named(tmp_path: Path) -> None:
    grants = ("User:gone * WRITE", "User:gone 10.0.0.7 WRITE", "User:gone * DELETE")
    variables = {**kafka(tmp_path, listing(("TOPIC", USAGE, "LITERAL", grants)))}
    with pytest.raises(PlayFailed) as failed:
        preflight(tmp_path, {**variables, "kquota_topic_former_principals": ["User:gone"]})
    shown = " ".join(str(failed.value).replace("\\n", " ").split())
    assert f"User:gone by WRITE on the literal topic {USAGE} from host 10.0.0.7" in shown
    assert f"User:gone by DELETE on the literal topic {USAGE} from host *" in shown
    assert f"User:gone by WRITE on the literal topic {USAGE} from host *" not in shown


def test_a_cluster_without_an_authorizer_is_reported_and_other_failures_end_the_play(tmp_path: Path) -> None:
    without = "org.apache.kafka.common.errors.SecurityDisabledException: No Authorizer is configured."
    variables = kafka(tmp_path, without, code=1)
    assert "any client may write" in " ".join(preflight(tmp_path, variables).split())
    (tmp_path / "answer").write_text("TimeoutException")
    with pytest.raises(PlayFailed, match="TimeoutException"):
        preflight(tmp_path, variables)


def test_without_acls_of_the_role_nothing_is_asked(tmp_path: Path) -> None:
    shown = preflight(tmp_path, {**kafka(tmp_path, ""), "kquota_topic_acls": False})
    assert "does not check which other principals may write" in " ".join(shown.split())
    assert not (tmp_path / "asked").exists()
