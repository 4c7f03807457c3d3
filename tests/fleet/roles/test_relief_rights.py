"""`kquota relief` with the rights that the role kquota_topic gives, on a real broker with ACLs."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from testbed.loopback.certificates import principal_of
from testbed.loopback.clients import admin_client, create_topic
from testbed.loopback.cluster import ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.plug_in import OPERATOR, agent_name
from testbed.loopback.ports import PortReservation
from testbed.loopback.runtime import ensure_kafka_runtime
from testbed.loopback.volumes import MIB, VolumeSpec
from tests.fleet.roles.plays import PlayFailed, run_tasks
from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.fleet import HISTORY_TOPIC, ORDERS_TOPIC, QUICK, USAGE_TOPIC
from tests.integration.waiting import eventually

BOSS, TOPIC, DISK_BYTES = "boss", "visits", 256 * MIB
DAY_MS, RECORD_BYTES, RECORDS = 86_400_000, 65_536, 160
TOOLS = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "configs": "org.apache.kafka.tools.ConfigCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
}
TO_FREE_BYTES = 5 * MIB
ACLS = [("kquota_topic", "preflight"), ("kquota_topic", "configure_acls")]
GIVEN = {
    ("TOPIC", "*"): {"DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"},
    ("TOPIC", ORDERS_TOPIC): {"READ", "WRITE"},
    ("GROUP", "*"): {"DESCRIBE"},
    ("BROKER", "kafka-cluster"): {"DESCRIBE_CONFIGS"},
}


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    """One broker that denies all that no ACL allows, with a topic of ten days."""
    node = NodeSpec(node_id=1, volumes=(VolumeSpec(DISK_BYTES),), separate_metadata_dir=True)
    spec = ClusterSpec(
        nodes=(node,),
        authorizer=True,
        super_users=(principal_of(BOSS),),
        properties={"log.retention.check.interval.ms": "2000", "log.initial.task.delay.ms": "1000"},
    )
    with KafkaCluster(spec, ensure_kafka_runtime()) as cluster:
        for topic in (USAGE_TOPIC, HISTORY_TOPIC, ORDERS_TOPIC):
            ours = {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"}
            create_topic(boss(cluster), topic, [[1]], ours)
        settings = {"segment.bytes": str(MIB), "retention.ms": str(30 * DAY_MS), "file.delete.delay.ms": "0"}
        create_topic(boss(cluster), TOPIC, [[1]], settings)
        producer = Producer(cluster.client_configuration(BOSS) | {"linger.ms": 0, "batch.size": RECORD_BYTES})
        begun_ms = round(time.time() * 1000) - 10 * DAY_MS
        for number in range(RECORDS):
            at_ms = begun_ms + 10 * DAY_MS * number // RECORDS
            producer.produce(TOPIC, os.urandom(RECORD_BYTES), timestamp=at_ms)
            producer.poll(0)
        assert producer.flush(60) == 0
        producer.close()
        yield cluster


@pytest.fixture
def agent(cluster: KafkaCluster) -> Iterator[AgentProcess]:
    """The files of an agent that does not run, with limits that leave something to free."""
    status = os.statvfs(cluster.nodes[1].volumes[0].mount_point)
    limits = {
        "hard": {"type": "MinFreeBytes", "level": 1},
        "soft": {"type": "MinFreeBytes", "level": status.f_bavail * status.f_frsize + TO_FREE_BYTES},
    }
    with PortReservation() as ports:
        agent = AgentProcess(cluster, 1, ports.reserve(), {**QUICK, "mode": "observe", "limits": limits})
        yield agent
        agent.close()


def boss(cluster: KafkaCluster) -> AdminClient:
    return admin_client(cluster.client_configuration(BOSS))


def variables(cluster: KafkaCluster, folder: Path) -> dict[str, object]:
    """The role's variables, with Kafka's own tools; the operator alone gets ACLs."""
    runtime, home = ensure_kafka_runtime(), folder / "kafka"
    (home / "bin").mkdir(parents=True)
    for name, main_class in TOOLS.items():
        java = [runtime.java, "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp", runtime.class_path(), main_class]
        tool = home / f"bin/kafka-{name}.sh"
        tool.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, java))} "$@"\n')
        tool.chmod(0o755)
    administrator = folder / "admin.properties"
    identity = cluster.client_configuration(BOSS)
    administrator.write_text(java_properties(identity))
    return {
        "kquota_kafka_home": str(home),
        "kquota_bootstrap_servers": identity["bootstrap.servers"],
        "kquota_admin_config": str(administrator),
        "kquota_admin_principals": [principal_of(BOSS)],
        "kquota_agent_principals": [principal_of(agent_name(1))],
        "kquota_topic_agent_acls": [],
        "kquota_operator_principals": [principal_of(OPERATOR)],
        "kquota_relief_principals": [principal_of(OPERATOR)],
    }


def java_properties(client: dict[str, str]) -> str:
    """The same identity for Kafka's own tools."""
    return "\n".join(
        [
            "security.protocol=SSL",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={client['ssl.ca.location']}",
            "ssl.keystore.type=PEM",
            f"ssl.keystore.location={client['ssl.key.location'].removesuffix('.key')}.keystore.pem",
        ]
    )


def rights(cluster: KafkaCluster) -> dict[tuple[str, str], set[str]]:
    """The operations that ACLs allow the operator, by resource."""
    wanted = AclBindingFilter(
        *(ResourceType.ANY, None, ResourcePatternType.ANY, principal_of(OPERATOR), None),
        *(AclOperation.ANY, AclPermissionType.ANY),
    )
    found: dict[tuple[str, str], set[str]] = {}
    admin = boss(cluster)
    for one in admin.describe_acls(wanted).result(30):
        assert one.permission_type is AclPermissionType.ALLOW
        found.setdefault((one.restype.name, one.name), set()).add(one.operation.name)
    return found


def retention_ms(cluster: KafkaCluster) -> int:
    resource = ConfigResource(ResourceType.TOPIC, TOPIC)
    admin = boss(cluster)
    settings = admin.describe_configs([resource])[resource].result(30)
    return int(settings["retention.ms"].value)


def relief(agent: AgentProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    return agent.cli("relief", *arguments, "--command-config", str(agent.operator))


def test_an_operator_applies_and_undoes_a_plan_with_what_the_role_gives_and_takes_back(
    cluster: KafkaCluster, agent: AgentProcess, tmp_path: Path
) -> None:
    given, plan = variables(cluster, tmp_path), tmp_path / "plan.json"
    assert run_tasks(tmp_path, ACLS, given) == 1
    eventually(lambda: rights(cluster) == GIVEN, "the broker has heard of the rights")
    assert run_tasks(tmp_path, ACLS, given) == 0

    made = eventually(
        lambda: (done := relief(agent, "--plan", str(plan), "--reason", "full")).returncode == 0 and done,
        "the broker has heard of the rights",
    )
    assert "note:" not in made.stdout
    assert f"keep less of topic {TOPIC}" in made.stdout
    assert "all consumer groups have read them" in made.stdout
    applied = relief(agent, "--apply", str(plan))
    assert applied.returncode == 0, applied.stdout + applied.stderr
    assert retention_ms(cluster) == int(json.loads(plan.read_text("utf-8"))["steps"][0]["to"])
    undone = relief(agent, "--undo", str(plan))
    assert undone.returncode == 0, undone.stdout + undone.stderr
    eventually(lambda: retention_ms(cluster) == 30 * DAY_MS, "the broker has heard of the former value")

    # No longer named, it has to give the right back, and stays an operator.
    less = {**given, "kquota_relief_principals": []}
    with pytest.raises(PlayFailed) as failed:
        run_tasks(tmp_path, ACLS, less)
    shown = " ".join(str(failed.value).replace("\\n", " ").split())
    assert f"{principal_of(OPERATOR)} by ALTER_CONFIGS on the literal topic *" in shown
    assert rights(cluster) == GIVEN
    less["kquota_topic_former_principals"] = [principal_of(OPERATOR)]
    assert run_tasks(tmp_path, ACLS, less) == 1
    left = {("TOPIC", ORDERS_TOPIC): {"READ", "WRITE"}}
    eventually(lambda: rights(cluster) == left, "the broker has heard of what was taken back")
    assert run_tasks(tmp_path, ACLS, less) == 0
