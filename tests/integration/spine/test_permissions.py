"""A whole agent that lacks one permission after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from testbed.loopback.certificates import principal_of
from testbed.loopback.clients import admin_client
from testbed.loopback.cluster import ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.plug_in import agent_name
from testbed.loopback.ports import PortReservation
from testbed.loopback.runtime import KafkaRuntime
from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.fleet import QUICK, USAGE_TOPIC
from tests.integration.waiting import eventually

pytestmark = pytest.mark.long
_BOSS = "boss"


@pytest.fixture
def cluster(kafka_runtime: KafkaRuntime) -> Iterator[KafkaCluster]:
    spec = ClusterSpec(
        nodes=(NodeSpec(node_id=1),),
        authorizer=True,
        super_users=(principal_of(_BOSS),),
        properties={"allow.everyone.if.no.acl.found": "true"},
    )
    with KafkaCluster(spec, kafka_runtime) as cluster:
        yield cluster


@pytest.fixture
def agent(cluster: KafkaCluster) -> Iterator[AgentProcess]:
    limits = {"hard": {"type": "MinFreeBytes", "level": 1}, "soft": {"type": "MinFreeBytes", "level": 2}}
    settings = {**QUICK, "mode": "observe", "staleness_seconds": 6, "lease_seconds": 6, "limits": limits}
    with PortReservation() as ports:
        agent = AgentProcess(cluster, 1, ports.reserve(), settings)
        agent.start()
        yield agent
        agent.close()


def grant(admin: AdminClient, operation: AclOperation, permission: AclPermissionType) -> None:
    binding = AclBinding(
        ResourceType.TOPIC,
        USAGE_TOPIC,
        ResourcePatternType.LITERAL,
        principal_of(agent_name(1)),
        "*",
        operation,
        permission,
    )
    for future in admin.create_acls([binding]).values():
        future.result(timeout=30)


def deny_nothing(admin: AdminClient) -> None:
    denials = AclBindingFilter(
        *(ResourceType.ANY, None, ResourcePatternType.ANY, None, None),
        *(AclOperation.ANY, AclPermissionType.DENY),
    )
    for future in admin.delete_acls([denials]).values():
        future.result(timeout=30)


@pytest.mark.accepts("F23")
def test_each_permission_that_is_taken_away_is_named_and_counted(
    cluster: KafkaCluster, agent: AgentProcess
) -> None:
    admin = admin_client(cluster.client_configuration(_BOSS))
    eventually(lambda: agent.state == "OPEN", "it has decided")
    grant(admin, AclOperation.ALL, AclPermissionType.ALLOW)
    for operation in (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE):
        name, mark = operation.name.lower(), agent.journal_mark()
        before = {one: denied(agent, one) for one in ("read", "write", "describe")}
        grant(admin, operation, AclPermissionType.DENY)
        sentence = f"denied {name} on"
        told = eventually(lambda: agent.told(sentence, since=mark), f"the journal says {sentence}")  # noqa: B023
        assert USAGE_TOPIC in told[0][1]
        eventually(lambda: denied(agent, name) > before[name], f"a metric counts denied {name}")  # noqa: B023
        eventually(lambda: agent.state == "PAUSE", "what is stale falls back")
        if operation is not AclOperation.DESCRIBE:  # without it nothing else is possible either
            others = {one for one in before if one != name and denied(agent, one) > before[one]}
            assert others == set(), f"{name} is not taken for another permission"
        deny_nothing(admin)
        eventually(lambda: agent.state == "OPEN", f"with {name} again, all is well")
    assert agent.process.running()


def denied(agent: AgentProcess, operation: str) -> float:
    return agent.metric("kquota_denied_total", operation=operation) or 0
