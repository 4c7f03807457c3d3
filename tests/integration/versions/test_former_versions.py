"""Former versions of Kafka: the plug-in on 4.0, and on 3.9 an agent that observes without it."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from testbed.loopback.clients import admin_client, create_topic, offsets_by_partition
from testbed.loopback.cluster import ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.ports import PortReservation
from testbed.loopback.runtime import ensure_kafka_runtime
from tests.integration.fence.fenced_cluster import FencedCluster
from tests.integration.quotas.producers import Librdkafka, rates
from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.fleet import QUICK
from tests.integration.waiting import at_rest, eventually

OFFERED = 800_000


@pytest.mark.parametrize("version", ["4.0.2", pytest.param("4.1.2", marks=pytest.mark.long)])
def test_the_plug_in_opens_throttles_and_pauses(callback_jar: Path, topic_name: str, version: str) -> None:
    fenced = FencedCluster(ensure_kafka_runtime(version, report=print), callback_jar)
    with fenced.cluster as cluster:
        fenced.decide("OPEN")
        admin = admin_client(cluster.client_configuration())
        create_topic(admin, topic_name, [[1, 2]])

        def end() -> int:
            return offsets_by_partition(admin, topic_name)[0]

        with Librdkafka(cluster, "app", topic_name, (0,), OFFERED) as producer:
            eventually(lambda: producer.delivered_bytes > 2_000_000, "it flows")
            (of_open,) = rates((producer,), 5)
            fenced.decide("THROTTLE")
            time.sleep(2)  # what was admitted before
            (of_throttle,) = rates((producer,), 6)
            print(f"{of_open:.0f} B/s in OPEN, {of_throttle:.0f} B/s at a factor of 0.2")
            assert of_throttle < 0.5 * of_open
            fenced.decide("PAUSE")
            held = at_rest(end, "what was authorized before is appended")
            time.sleep(3)
            assert end() == held
            fenced.decide("OPEN")
            eventually(lambda: end() > held, "it goes on by itself")
        assert not producer.failed


def test_the_names_with_metrics_are_refused_on_4_0_with_those_that_it_needs(
    callback_jar: Path, tmp_path: Path
) -> None:
    runtime = ensure_kafka_runtime("4.0.2", report=print)
    file = tmp_path / "server.properties"
    said = {}
    for callback, fence in (
        ("KquotaCallback", "KquotaAuthorizer"),
        ("CallbackWithoutMetrics", "AuthorizerWithoutMetrics"),
    ):
        file.write_text(
            "node.id=1\nprocess.roles=broker\nkquota.exempt.principals=User:agent\nkquota.fence.authorizer.class=none\n"
            f"client.quota.callback.class=org.kquota.{callback}\nauthorizer.class.name=org.kquota.{fence}\n"
        )
        command = [
            runtime.java,
            "-cp",
            runtime.class_path(callback_jar),
            "org.kquota.CheckProperties",
            str(file),
        ]
        said[callback] = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said["KquotaCallback"].returncode == 78
    assert "org.kquota.CallbackWithoutMetrics" in said["KquotaCallback"].stderr
    assert said["CallbackWithoutMetrics"].returncode == 0, said["CallbackWithoutMetrics"].stderr


@pytest.mark.long
def test_an_agent_alone_observes_kafka_3_9() -> None:
    runtime = ensure_kafka_runtime("3.9.2", report=print)
    spec = ClusterSpec(nodes=(NodeSpec(node_id=1),))
    # Without an archive of its classes, it starts slowly.
    cluster = KafkaCluster(spec, runtime, start_timeout_seconds=300)
    with cluster, PortReservation() as ports:
        agent = AgentProcess(cluster, 1, ports.reserve(), {**QUICK, "mode": "observe"})
        agent.start()
        try:
            eventually(lambda: agent.decision is not None, "it has decided", 120)
            status = json.loads(agent.order("status", "--json"))
            (broker,) = status["brokers"]
            assert [volume["capacity_bytes"] > 0 for volume in broker["volumes"]] == [True]
            assert agent.decision is not None
            assert agent.decision["mode"] == "observe"
            agent.await_metric(1, "kquota_connected")
            print(agent.order("status"))
        finally:
            agent.close()
