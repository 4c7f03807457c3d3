"""Orders in a cluster with ACLs: the principals that the role kquota_topic adds give them, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from testbed.loopback.certificates import principal_of
from testbed.loopback.clients import admin_client
from testbed.loopback.cluster import ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.plug_in import OPERATOR, agent_name, write_operator_properties
from testbed.loopback.ports import PortReservation
from testbed.loopback.runtime import KafkaRuntime
from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.fleet import HISTORY_TOPIC, ORDERS_TOPIC, QUICK, USAGE_TOPIC
from tests.integration.waiting import eventually

_BOSS = "boss"
_TOPIC, _GROUP, _CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.BROKER
_LITERAL, _PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
_AGENTS = {USAGE_TOPIC: "READ WRITE", HISTORY_TOPIC: "WRITE", ORDERS_TOPIC: "READ"}
LIMITS = {"hard": {"type": "MinFreeBytes", "level": 1}, "soft": {"type": "MinFreeBytes", "level": 2}}


@pytest.fixture
def cluster(kafka_runtime: KafkaRuntime) -> Iterator[KafkaCluster]:
    spec = ClusterSpec(nodes=(NodeSpec(node_id=1),), authorizer=True, super_users=(principal_of(_BOSS),))
    with KafkaCluster(spec, kafka_runtime) as cluster:
        agent, bindings = principal_of(agent_name(1)), list[AclBinding]()
        for topic, operations in _AGENTS.items():
            wanted = [*operations.split(), "DESCRIBE_CONFIGS", "CREATE"]
            bindings += acls(_TOPIC, topic, agent, wanted)
        bindings += acls(_CLUSTER, "kafka-cluster", agent, ["DESCRIBE_CONFIGS"])
        bindings += acls(_GROUP, "kquota-", agent, ["DESCRIBE"], _PREFIXED)
        bindings += acls(_TOPIC, ORDERS_TOPIC, principal_of(OPERATOR), ["READ", "WRITE"])
        admin = admin_client(cluster.client_configuration(_BOSS))
        for future in admin.create_acls(bindings).values():
            future.result(timeout=60)
        yield cluster


def acls(
    kind: ResourceType,
    name: str,
    principal: str,
    operations: Sequence[str],
    pattern: ResourcePatternType = _LITERAL,
) -> list[AclBinding]:
    allow = AclPermissionType.ALLOW
    return [
        AclBinding(kind, name, pattern, principal, "*", AclOperation[operation], allow)
        for operation in operations
    ]


@pytest.fixture
def agent(cluster: KafkaCluster) -> Iterator[AgentProcess]:
    with PortReservation() as ports:
        agent = AgentProcess(cluster, 1, ports.reserve(), {**QUICK, "mode": "observe", "limits": LIMITS})
        agent.start()
        yield agent
        agent.close()


@pytest.mark.accepts("G11")
def test_an_agent_s_key_writes_no_order_and_an_operator_s_holds_the_cluster(
    cluster: KafkaCluster, agent: AgentProcess
) -> None:
    eventually(lambda: agent.state == "OPEN", "it has decided", 120)
    hold = ("hold", "pause", "--for", "10m", "--reason", "moving racks")
    operators, agents = agent.operator, agent.directory / "agents.properties"
    key_of_agent = cluster.client_configuration(agent_name(1))
    agent.operator = write_operator_properties(agents, key_of_agent)
    refused = agent.cli(*hold)
    assert refused.returncode == 1
    assert f"denied write on topic {ORDERS_TOPIC}" in refused.stderr

    errors: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        errors.append(error)

    producer = Producer({**key_of_agent, "log_level": 0})
    producer.produce(ORDERS_TOPIC, key=b"decommission/1", value=b"{}", on_delivery=delivered)
    assert producer.flush(60) == 0
    assert [error and error.code() for error in errors] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    assert agent.state == "OPEN"

    agent.operator = operators
    agent.order(*hold)
    eventually(lambda: agent.state == "PAUSE", "the operator's order counts")
    assert agent.decision is not None
    assert agent.decision["hold"]["reason"] == "moving racks"
    agent.order("hold", "release", "--reason", "done")
    eventually(lambda: agent.state == "OPEN", "it has ended")
