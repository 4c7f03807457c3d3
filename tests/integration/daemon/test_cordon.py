"""A real broker with two disks places no new partition on the full one, until that has room again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kquota.kafka.admin import AdminConnection
from kquota.kafka.config import ClientProperties
from kquota.kafka.errors import KafkaFailure
from kquota.policy.cordon import SETTING
from testbed.loopback.clients import admin_client, create_topic
from testbed.loopback.cluster import ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.ports import PortReservation
from testbed.loopback.runtime import ensure_kafka_runtime
from testbed.loopback.volumes import MIB, LoopVolume, VolumeSpec
from tests.integration.conftest import StartCluster
from tests.integration.spine.agents import AgentProcess
from tests.integration.waiting import eventually

LIMITS = {
    "soft": {"type": "MinFreeBytes", "level": 64 * MIB},
    "hard": {"type": "MinFreeBytes", "level": 16 * MIB},
}
QUICK = {"interval_seconds": 1, "topics": {"create": True}, "limits": LIMITS}


class Broker:
    """One broker with two disks, of which the first is to be full, its agent, and an operator."""

    def __init__(self, cluster: KafkaCluster, metrics_port: int) -> None:
        layout = cluster.nodes[1].layout
        self.full, self.roomy = layout.log_dirs
        self.disk: LoopVolume = layout.volumes[0]
        self.configuration = cluster.client_configuration()
        self.admin = AdminConnection(ClientProperties(self.configuration, "operator"))
        self.agent = AgentProcess(cluster, 1, metrics_port, {**QUICK, "cordon": "soft"})

    def cordoned(self) -> set[str]:
        settings = self.admin.broker_settings(1).result()
        assert not isinstance(settings, KafkaFailure), settings.sentence
        return set(settings[SETTING].split(",")) - {""}

    def set_by_operator(self, *log_dirs: object) -> None:
        failure = self.admin.set_broker_setting(1, SETTING, ",".join(map(str, log_dirs)) or None).result()
        assert failure is None, failure.sentence

    def places(self, topic: str) -> tuple[int, int]:
        """Create a topic of four partitions; return how many are on the full disk and on the other one."""
        create_topic(admin_client(self.configuration), topic, [[1]] * 4)

        def found() -> tuple[int, int]:
            of_full, of_roomy = (len([*one.glob(f"{topic}-*")]) for one in (self.full, self.roomy))
            return of_full, of_roomy

        eventually(lambda: sum(found()) == 4, "all partitions are there")
        return found()

    def fill(self) -> None:
        self.disk.fill(40 * MIB)

    def empty(self) -> None:
        (self.disk.mount_point / "ballast").unlink()

    def await_cordon(self, *log_dirs: object) -> None:
        eventually(lambda: self.cordoned() == {str(one) for one in log_dirs}, f"cordoned are {log_dirs}")


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    runtime = request.getfixturevalue("kafka_runtime")
    spec = ClusterSpec.of(1, volumes=(VolumeSpec(256 * MIB),) * 2, separate_metadata_dir=True)
    with KafkaCluster(spec, runtime) as cluster, PortReservation() as ports:
        found = Broker(cluster, ports.reserve())
        try:
            yield found
        finally:
            found.agent.close()
            found.admin.close()


@pytest.mark.accepts("G17")
def test_a_full_volume_gets_no_new_partition_until_it_has_room_again(broker: Broker) -> None:
    agent = broker.agent
    agent.start()
    eventually(lambda: agent.decision is not None, "it has decided", 120)
    of_full, of_roomy = broker.places("before")
    assert min(of_full, of_roomy) > 0, "Kafka uses both"
    assert broker.cordoned() == set()

    broker.fill()
    broker.await_cordon(broker.full)
    agent.await_entry(
        "WARNING", f"Kafka places no new partition in {broker.full}: its volume is over its soft limit"
    )
    assert broker.places("during") == (0, 4)
    labels = {"volume": broker.disk.device, "mount_point": str(broker.disk.mount_point), "role": "data"}
    agent.await_metric(1, "kquota_volume_cordoned", **labels)

    agent.kill()
    assert broker.cordoned() == {str(broker.full)}, "the cordon outlives the agent"
    broker.set_by_operator(broker.full, broker.roomy)
    broker.empty()
    agent.start()
    broker.await_cordon(broker.roomy)
    agent.await_entry("WARNING", f"Kafka may place new partitions in {broker.full} again")
    broker.set_by_operator()
    broker.await_cordon()
    assert broker.places("after")[0] > 0
    eventually(lambda: agent.state == "OPEN", "the instance that was killed no longer counts")
    agent.stop()


@pytest.mark.accepts("G17")
def test_an_operators_cordon_of_a_full_volume_stays(broker: Broker) -> None:
    broker.set_by_operator(broker.full)
    broker.await_cordon(broker.full)
    broker.fill()
    broker.agent.start()
    eventually(lambda: broker.agent.state == "THROTTLE", "the volume is over its soft limit")
    broker.empty()
    eventually(lambda: broker.agent.state == "OPEN", "it has room again")
    broker.agent.reload(cordon="hard")
    assert broker.cordoned() == {str(broker.full)}
    broker.agent.stop()
    broker.set_by_operator()
    broker.await_cordon()


@pytest.mark.accepts("G17")
def test_it_ends_when_it_is_switched_off_and_when_the_agent_is_removed(broker: Broker) -> None:
    agent = broker.agent
    broker.fill()
    agent.write_config(cordon="soft")
    agent.start()
    broker.await_cordon(broker.full)
    agent.reload(cordon="off")
    broker.await_cordon()
    agent.reload(cordon="soft")
    broker.await_cordon(broker.full)
    agent.stop()
    assert agent.order("uncordon") == f"Kafka may place new partitions in {broker.full} again\n"
    broker.await_cordon()
    assert agent.order("uncordon") == "the agent of broker 1 has cordoned no log dir\n"
    broker.empty()


@pytest.mark.long
@pytest.mark.accepts("G17")
def test_a_broker_without_cordons_is_refused_with_a_sentence(start_cluster: StartCluster) -> None:
    spec = ClusterSpec(nodes=(NodeSpec(node_id=1, volumes=(VolumeSpec(256 * MIB),)),))
    cluster = start_cluster(spec, ensure_kafka_runtime("4.0.2", report=print))
    with PortReservation() as ports:
        agent = AgentProcess(cluster, 1, ports.reserve(), {**QUICK, "cordon": "soft"})
        cluster.nodes[1].layout.volumes[0].fill(40 * MIB)
        agent.start()
        try:
            agent.await_entry(
                "WARNING",
                f"the cordon of {cluster.nodes[1].layout.log_dirs[0]} can't be changed: broker 1 has no"
                " setting cordoned.log.dirs, which Kafka has since 4.3: upgrade Kafka, or set cordon: off",
            )
            eventually(lambda: agent.state == "THROTTLE", "it protects the disk all the same")
        finally:
            agent.close()
