"""The rollout's ACLs where everyone may use what no ACL names, on a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from testbed.loopback.certificates import principal_of
from testbed.loopback.clients import admin_client, create_topic
from testbed.loopback.cluster import ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.plug_in import agent_name
from testbed.loopback.runtime import ensure_kafka_runtime
from testbed.loopback.volumes import MIB, VolumeSpec
from tests.fleet.roles.plays import PROGRAMS, PlayFailed, run_play
from tests.fleet.roles.test_relief_rights import BOSS, boss, variables
from tests.integration.spine.fleet import HISTORY_TOPIC, ORDERS_TOPIC, USAGE_TOPIC
from tests.integration.waiting import eventually

APP = "app"
AGENT = principal_of(agent_name(1))
OURS = {
    ("TOPIC", USAGE_TOPIC),
    ("TOPIC", HISTORY_TOPIC),
    ("TOPIC", ORDERS_TOPIC),
    ("GROUP", "kquota-"),
}


def entry(role: str, part: str) -> dict[str, Any]:
    return {"ansible.builtin.include_role": {"name": role, "tasks_from": part, "public": True}}


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    """One broker with an authorizer that lets everyone do what no ACL names."""
    spec = ClusterSpec(
        nodes=(NodeSpec(node_id=1, volumes=(VolumeSpec(128 * MIB),), separate_metadata_dir=True),),
        authorizer=True,
        super_users=(principal_of(BOSS),),
        properties={"allow.everyone.if.no.acl.found": "true"},
    )
    with KafkaCluster(spec, ensure_kafka_runtime()) as cluster:
        for topic in (USAGE_TOPIC, HISTORY_TOPIC, ORDERS_TOPIC):
            create_topic(boss(cluster), topic, [[1]], {"cleanup.policy": "compact"})
        yield cluster


class Rollout:
    """The checks and ACLs of a rollout, for a broker whose file has the property, and a controller."""

    def __init__(self, cluster: KafkaCluster, folder: Path) -> None:
        self.folder, self.given = folder, variables(cluster, folder)
        # All that the role gives to agents, too.
        del self.given["kquota_topic_agent_acls"]
        files = {
            "broker": "node.id=1\nsuper.users=User:admin\nallow.everyone.if.no.acl.found = TRUE\n",
            "controller": "node.id=2\nprocess.roles=controller\n",
        }
        hosts = {}
        for name, text in files.items():
            (folder / f"{name}.properties").write_text(text)
            hosts[name] = {"kquota_server_properties": str(folder / f"{name}.properties")}
        local = {"ansible_connection": "local", "ansible_python_interpreter": str(PROGRAMS / "python")}
        groups = {
            "kafka_brokers": {"hosts": {"broker": hosts["broker"]}, "vars": local},
            "kafka_controllers": {"hosts": {"controller": hosts["controller"]}, "vars": local},
        }
        (folder / "hosts.yml").write_text(json.dumps(groups))

    def run(self, *parts: str, **given: object) -> str:
        tasks = [entry("kquota_callback", "facts_properties")]
        tasks += [entry("kquota_topic", part) for part in parts]
        tools = {"kquota_tools_host": "broker"}
        inventory = str(self.folder / "hosts.yml")
        return run_play(self.folder, tasks, {**self.given, **tools, **given}, inventory=inventory)


def produces(cluster: KafkaCluster, topic: str) -> list[str]:
    """Have a client without any ACL produce to the topic; return the names of the errors."""
    producer = Producer(cluster.client_configuration(APP))
    results: list[KafkaError | None] = []
    producer.produce(topic, b"x", on_delivery=lambda error, _: results.append(error))
    assert producer.flush(30) == 0
    producer.close()
    return [error.name() for error in results if error is not None]


def works(cluster: KafkaCluster, topic: str) -> None:
    """Fail unless a client without any ACL creates the topic, and produces to it and consumes from it."""
    identity = cluster.client_configuration(APP)
    admin = admin_client(identity)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    assert produces(cluster, topic) == []
    consumer = Consumer(
        {
            **identity,
            "group.id": APP,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 500,
        }
    )
    consumer.subscribe([topic])
    read = consumer.poll(30)
    consumer.close()
    assert read is not None
    assert read.error() is None


def closed(cluster: KafkaCluster) -> set[tuple[str, str]]:
    """The resources that have an ACL."""
    every = AclBindingFilter(
        *(ResourceType.ANY, None, ResourcePatternType.ANY, None, None),
        *(AclOperation.ANY, AclPermissionType.ANY),
    )
    admin = boss(cluster)
    return {(one.restype.name, one.name) for one in admin.describe_acls(every).result(30)}


def allow(
    cluster: KafkaCluster, kind: ResourceType, name: str, principal: str, operation: AclOperation
) -> None:
    one = AclBinding(
        *(kind, name, ResourcePatternType.LITERAL, principal, "*"),
        *(operation, AclPermissionType.ALLOW),
    )
    admin = boss(cluster)
    admin.create_acls([one])[one].result(30)


def test_clients_without_an_acl_go_on_and_a_removal_takes_all_back(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    rollout = Rollout(cluster, tmp_path)
    works(cluster, "before")
    said = " ".join(rollout.run("preflight", "configure_acls").split())
    assert "gives nothing on TOPIC *, GROUP *, CLUSTER kafka-cluster" in said
    assert "They do not see topics and groups that have ACLs of their own" in said
    eventually(lambda: closed(cluster) == OURS, "the broker has heard of the ACLs")
    works(cluster, "after")
    # A client without an ACL does not write to the topics of kquota.
    assert produces(cluster, USAGE_TOPIC) == ["TOPIC_AUTHORIZATION_FAILED"]
    rollout.run("remove")
    eventually(lambda: not closed(cluster), "the broker has heard of the removal")
    works(cluster, "at-last")


def test_what_another_s_acl_has_closed_needs_a_permission_and_one_s_own_lockout_is_named(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    rollout = Rollout(cluster, tmp_path)
    # Only the agent's own ACL closes all topics; another's the cluster.
    allow(cluster, ResourceType.TOPIC, "*", AGENT, AclOperation.DESCRIBE)
    allow(cluster, ResourceType.BROKER, "kafka-cluster", "User:CN=tool", AclOperation.DESCRIBE)
    eventually(lambda: len(closed(cluster)) == 2, "the broker has heard of the ACLs")
    with pytest.raises(PlayFailed) as failed:
        rollout.run("preflight", "configure_acls")
    said = " ".join(str(failed.value).replace("\\n", " ").split())
    assert (
        "on TOPIC *: all other clients are denied there. To take them back, run again with these in" in said
    )
    assert f"kquota_topic_former_principals: {AGENT}." in said
    rollout.run("preflight", "configure_acls", kquota_topic_former_principals=[AGENT])
    eventually(
        lambda: closed(cluster) == OURS | {("BROKER", "kafka-cluster")}, "the broker has heard of the ACLs"
    )
    agents = AclBindingFilter(
        *(ResourceType.BROKER, None, ResourcePatternType.ANY, AGENT, None),
        *(AclOperation.ANY, AclPermissionType.ANY),
    )
    admin = boss(cluster)
    given = admin.describe_acls(agents).result(30)
    assert {one.operation for one in given} == {AclOperation.DESCRIBE_CONFIGS}
    rollout.run("preflight", kquota_topic_former_principals=[])
