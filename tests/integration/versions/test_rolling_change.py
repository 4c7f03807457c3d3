"""Kafka is upgraded and downgraded under load, line by line, with the plug-in in every broker."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest

from bench.ledger.campaign import TOPIC_SETTINGS, await_records, replicas, settled
from bench.ledger.figures import PROMISES
from bench.ledger.producers import KINDS, LedgerProducer, compiled
from bench.reaction import AppliedStates
from kquota.policy.decision import State
from kquota.policy.limits import Limit, LimitPair, LimitType
from testbed.demo.loopback_stage import BROKER_IDS, LoopbackStage
from testbed.demo.plan import Plan
from testbed.loopback.clients import admin_client, create_topic, offsets_by_partition
from testbed.loopback.plug_in import classes_of
from testbed.loopback.runtime import KafkaRuntime, ensure_kafka_runtime
from testbed.loopback.volumes import MIB, VolumeSpec
from tests.integration.waiting import at_rest, eventually
from tests.kafka_lines import KAFKA_LINES

_FULL_BROKER = 3
_PAUSE_FREE_RATIO = 0.18
_PLAN = Plan(
    volumes=dict.fromkeys(BROKER_IDS, (VolumeSpec(2048 * MIB),)),
    limits=LimitPair(
        soft=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 40), hard=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 20)
    ),
)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.accepts("F45")
def test_each_line_of_kafka_follows_the_other_under_load_and_back(
    callback_jar: Path, kafka_runtime: KafkaRuntime
) -> None:
    # The cluster keeps the features of its oldest line, which alone leaves a way back.
    runtimes = [ensure_kafka_runtime(line, report=print) for line in (*KAFKA_LINES, *KAFKA_LINES[-2::-1])]
    with LoopbackStage(_PLAN, runtimes[0], callback_jar=callback_jar, report=print) as stage:
        states = AppliedStates(stage.files)
        states.wait_for(State.OPEN)
        admin = admin_client(stage.cluster.client_configuration())
        for kind in KINDS:
            create_topic(admin, kind.topic, replicas(), TOPIC_SETTINGS)
        java = compiled(kafka_runtime, stage.cluster.path)
        producers = [LedgerProducer(kind, stage.cluster, java, 50_000.0, {}) for kind in KINDS]
        await_records(producers)
        for before, after in pairwise(runtimes):
            for broker_id in BROKER_IDS:
                node = stage.cluster.nodes[broker_id]
                node.stop()
                # On the way down, the names that the older line knows have to be there before it starts.
                has_metrics = before.has_plug_in_metrics and after.has_plug_in_metrics
                node.change(after, classes_of(has_metrics=has_metrics))
                stage.cluster.restart(broker_id, timeout_seconds=300)
                print(f"broker {broker_id}: {before.version} -> {after.version}")
                if broker_id == BROKER_IDS[1]:  # two lines at work
                    _pause_holds(stage, states)
            await_records(producers)
            _pause_holds(stage, states)
            await_records(producers)
        broken = {}
        for producer, _book, account in settled(producers, stage.cluster.client_configuration()):
            topic = producer.topic
            print(topic, account)
            # A leader that moves loses records for which acks=1 does not wait, as one that dies.
            broken[topic] = account.broken(PROMISES[producer.kind.delivery], leaders_died=True)
    assert {topic: wrong for topic, wrong in broken.items() if wrong} == {}


def _pause_holds(stage: LoopbackStage, states: AppliedStates) -> None:
    """A full volume holds all producers on all brokers, of either line; freed space lets them go on."""
    admin = admin_client(stage.cluster.client_configuration())

    def landed() -> int:
        return sum(sum(offsets_by_partition(admin, kind.topic).values()) for kind in KINDS)

    volume = stage.cluster.nodes[_FULL_BROKER].volumes[0]
    volume.fill(int(_PAUSE_FREE_RATIO * volume.capacity_bytes()))
    states.wait_for(State.PAUSE)
    held = at_rest(landed, "what was authorized before is appended")
    time.sleep(3)
    assert landed() == held
    (volume.mount_point / "ballast").unlink()
    states.wait_for(State.OPEN)
    eventually(lambda: landed() > held, "it goes on by itself")
    stage.check_agents()
