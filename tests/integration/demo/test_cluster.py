"""The loopback cluster: its promises to the tests on it."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from testbed.loopback.certificates import principal_of
from testbed.loopback.clients import (
    admin_client,
    create_topic,
    delete_records_before,
    offsets_by_partition,
    visible_brokers,
)
from testbed.loopback.cluster import ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.node import NodeFailed
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB, VolumeSpec
from tests.integration.conftest import StartCluster
from tests.integration.demo.conftest import RunScript
from tests.integration.demo.remains import remains_of, wait_until_nothing_remains

OWNER = """
import os
from pathlib import Path
from testbed.loopback.cluster import ClusterSpec, KafkaCluster
from testbed.loopback.runtime import ensure_kafka_runtime
from testbed.loopback.volumes import MIB, VolumeSpec

class Talkative(KafkaCluster):
    def _prepare(self):
        print("prepare", self.path)
        super()._prepare()
    def _format(self):
        print("format", self.path)
        super()._format()
    def wait_until_serving(self, *args, **options):
        print("start", self.path)
        super().wait_until_serving(*args, **options)

spec = ClusterSpec.of(1, volumes=(VolumeSpec(32 * MIB),) * 2)
with Talkative(spec, ensure_kafka_runtime(), root=Path(os.environ["ROOT"])) as cluster:
    print("serve", cluster.path)
    os.kill(os.getpid(), 19)  # SIGSTOP: wait for what the test sends
    import time; time.sleep(300)
"""


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("start", signal.SIGINT),
        ("serve", signal.SIGKILL),
        *(
            pytest.param(moment, number, marks=pytest.mark.long)
            for moment, number in (
                ("prepare", signal.SIGINT),
                ("prepare", signal.SIGKILL),
                ("format", signal.SIGINT),
                ("format", signal.SIGKILL),
                ("start", signal.SIGKILL),
                ("serve", signal.SIGINT),
            )
        ),
    ],
)
def test_nothing_outlives_a_cluster_ended_at(
    moment: str, number: signal.Signals, run_script: RunScript
) -> None:
    owner = run_script(OWNER)
    assert owner.stdout is not None
    reached, path = next(line.split() for line in owner.stdout if line.startswith(moment))

    os.killpg(owner.pid, number)
    os.killpg(owner.pid, signal.SIGCONT)

    assert reached == moment
    assert owner.wait(timeout=60) != 0
    wait_until_nothing_remains(Path(path))


def test_a_record_goes_in_and_an_operator_deletes_it(one_broker: KafkaCluster, topic_name: str) -> None:
    admin = admin_client(one_broker.client_configuration())
    create_topic(admin, topic_name, [[1], [1]])
    producer = Producer(one_broker.client_configuration())
    for partition in (0, 1, 1):
        producer.produce(topic_name, b"x", partition=partition)
    assert producer.flush(30) == 0

    assert offsets_by_partition(admin, topic_name) == {0: 1, 1: 2}
    delete_records_before(admin, topic_name, {1: 2})


def test_internal_wants_a_certificate(one_broker: KafkaCluster) -> None:
    with_certificate = one_broker.client_configuration("kquota-agent-1")
    without = {
        key: value
        for key, value in with_certificate.items()
        if "certificate" not in key and ".key." not in key
    }

    assert set(admin_client(with_certificate).list_topics(timeout=60).brokers) == {1}
    with pytest.raises(KafkaException):
        admin_client(without).list_topics(timeout=3)


@pytest.mark.long
def test_three_brokers_see_each_other_on_real_volumes(start_cluster: StartCluster) -> None:
    sizes = (VolumeSpec(64 * MIB), VolumeSpec(32 * MIB, reserved_percentage=5))
    spec = ClusterSpec.of(3, volumes=sizes, separate_metadata_dir=True)
    agent = principal_of("kquota-agent-1")

    cluster = start_cluster(dataclasses.replace(spec, authorizer=True, super_users=(agent,)))

    for node in cluster.brokers:
        assert visible_brokers(node.clients_address) == {1, 2, 3}
        first, second = node.volumes
        assert 50 * MIB < first.capacity_bytes() < 64 * MIB
        assert second.consumed_bytes() > second.capacity_bytes() * 0.05
        assert [path.parent for path in node.layout.log_dirs] == [first.mount_point, second.mount_point]
        assert not list(node.layout.log_dirs[0].glob("__cluster_metadata-0"))
        ballast = first.fill(leave_bytes=8 * MIB)
        assert 7 * MIB < first.capacity_bytes() - first.consumed_bytes() <= 8 * MIB
        ballast.unlink()
    # Only the super user of that very name may grant access.
    binding = AclBinding(
        ResourceType.TOPIC,
        "t",
        ResourcePatternType.LITERAL,
        agent,
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    as_agent = admin_client(cluster.client_configuration("kquota-agent-1"))
    assert as_agent.create_acls([binding])[binding].result(timeout=30) is None
    as_anyone = admin_client(cluster.client_configuration("kquota-agent-7"))
    with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
        as_anyone.create_acls([binding])[binding].result(timeout=30)


@pytest.mark.long
def test_nodes_of_separate_roles_are_killed_hung_stopped_and_started_again(
    start_cluster: StartCluster,
) -> None:
    spec = ClusterSpec(
        nodes=(
            NodeSpec(node_id=100, roles=("controller",)),
            NodeSpec(node_id=1, roles=("broker",), log_dir_count=2),
        ),
    )
    cluster = start_cluster(spec)
    broker = cluster.nodes[1]
    assert [node.node_id for node in cluster.brokers] == [1]

    broker.kill()
    with pytest.raises(NodeFailed, match="node 1 ended with -9"):
        broker.accepts_connections()
    cluster.restart(1)
    broker.suspend()
    assert visible_brokers(broker.clients_address, timeout_seconds=1) == set()
    broker.resume()
    cluster.wait_until_serving([1])
    broker.stop()
    assert not broker.running()
    cluster.restart(1)
    assert visible_brokers(broker.clients_address) == {1}


def test_a_node_that_cannot_start_says_why(kafka_runtime: KafkaRuntime, tmp_path: Path) -> None:
    spec = ClusterSpec.of(1, properties={"client.quota.callback.class": "org.example.Missing"})
    cluster = KafkaCluster(spec, kafka_runtime, root=tmp_path)

    with pytest.raises(NodeFailed, match=r"org\.example\.Missing"), cluster:
        pass

    assert remains_of(cluster.path) == []


def test_properties_of_a_node_win_and_may_name_its_paths(start_cluster: StartCluster) -> None:
    spec = ClusterSpec(
        nodes=(NodeSpec(node_id=5, properties={"num.io.threads": "3"}),),
        properties={"num.io.threads": "2", "num.network.threads": "3"},
        node_properties=lambda layout, node_id: {
            "kquota.decision.file": f"{layout.directory}/{node_id}.json"
        },
        tls=False,
    )

    cluster = start_cluster(spec)

    written = cluster.nodes[5].layout.server_properties.read_text().splitlines()
    assert {"num.io.threads=3", "num.network.threads=3"} <= set(written)
    assert f"kquota.decision.file={cluster.path}/node-5/5.json" in written


def test_impossible_specifications_are_refused() -> None:
    with pytest.raises(ValueError, match="unique"):
        ClusterSpec(nodes=(NodeSpec(node_id=1), NodeSpec(node_id=1)))
    with pytest.raises(ValueError, match="controller"):
        ClusterSpec(nodes=(NodeSpec(node_id=1, roles=("broker",)),))
    with pytest.raises(ValueError, match="ANONYMOUS"):
        ClusterSpec(nodes=(NodeSpec(node_id=1),), authorizer=True, tls=False)
    with pytest.raises(ValueError, match="size_bytes: 5"):
        VolumeSpec(5)
