"""Changes by operators and machines: disks replaced, agents killed, everything restarted at once.

The tests share a fleet and come in this order.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import ResourceType

from kquota.guard.agent_state import AgentStateFile
from testbed.loopback.clients import admin_client, partition_health
from testbed.loopback.plug_in import FENCE_PROPERTIES
from testbed.loopback.runtime import KafkaRuntime
from tests.integration.spine.fleet import QUICK, USAGE_TOPIC, Fleet
from tests.integration.spine.test_outages import ALL, alter
from tests.integration.waiting import at_rest, eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

KILLS = int(os.environ.get("KQUOTA_KILLS", "40"))
"""How often the agent is killed at a random moment: an hour of it takes about 1,500."""
SEED = int(os.environ.get("KQUOTA_SEED", str(int(time.time()))))
_BREACH, _WITHIN_MARGIN = -0.02, 0.05
"""Headroom: past the hard limit, and above it by less than the release margin, where only memory holds."""


@pytest.fixture(scope="module")
def shared(kafka_runtime: KafkaRuntime, callback_jar: Path) -> Iterator[Fleet]:
    """Three brokers with the fence, whose cleaner looks ten times a second."""
    properties = {**FENCE_PROPERTIES, "log.cleaner.backoff.ms": "100"}
    settings = {**QUICK, "staleness_seconds": 60}
    volumes = dict.fromkeys(ALL, 1)
    with Fleet(kafka_runtime, callback_jar, volumes, settings=settings, properties=properties) as fleet:
        for agent in fleet.of():
            agent.start()
        fleet.await_enforced("OPEN", timeout_seconds=120)
        yield fleet


@pytest.fixture
def fragile(shared: Fleet) -> Iterator[Fleet]:
    """The shared fleet, left at OPEN with empty disks, everything running."""
    yield shared
    shared.clear()
    for node in shared.cluster.brokers:
        if not node.running():
            shared.cluster.restart(node.node_id)
    for agent in shared.of():
        if not agent.process.running():
            agent.start()
    shared.await_enforced("OPEN", timeout_seconds=120)


def settled_bytes(fleet: Fleet, topic: str) -> int:
    landed: int = at_rest(lambda: fleet.landed_bytes(topic), "what was authorized before is appended")
    return landed


@pytest.mark.accepts("F46")
def test_a_broker_comes_back_with_an_empty_disk_and_its_old_id(fragile: Fleet) -> None:
    fragile.create_topic("kept")
    with fragile.produce("kept", 20e6):
        eventually(lambda: fragile.landed_bytes("kept") > 60e6, "there is something to replicate", 120)
    fragile.fill(3, _BREACH)
    fragile.await_enforced("PAUSE")
    agent, node, survivors = fragile.agents[3], fragile.cluster.nodes[3], [1, 2]
    agent.stop()
    node.kill()
    (log_dir,) = node.layout.log_dirs
    shutil.rmtree(log_dir)
    log_dir.mkdir()
    fragile.clear()
    formatting = node.format_command(fragile.cluster.cluster_id, ignore_formatted=True)
    assert formatting.popen.wait(120) == 0, formatting.log_tail()
    assert all(other.applied_state == "PAUSE" for other in fragile.of(survivors)), "its last verdict counts"
    marks = fragile.marks()
    fragile.cluster.restart(3)
    agent.start()
    fragile.await_enforced("OPEN", timeout_seconds=120)
    admin = admin_client(fragile.cluster.client_configuration())

    def in_sync() -> bool:
        with suppress(KafkaException):
            return not any(one.under_replicated for one in partition_health(admin, "kept"))
        return False

    eventually(in_sync, "it has its replicas again", 120)
    assert fragile.disk(3).consumed_bytes() > 60e6
    for other in fragile.of(survivors):
        assert other.states_told(marks[other.broker_id]) == ["OPEN"], "one change, and no flapping"


@pytest.mark.accepts("F47")
def test_the_controller_dies_at_each_change_of_state(fragile: Fleet) -> None:
    for state, headroom in (("THROTTLE", 0.5), ("PAUSE", _BREACH), ("OPEN", None)):
        dead = fragile.cluster.active_controller()
        filled = next(i for i in ALL if i != dead)
        fragile.cluster.nodes[dead].kill()
        fragile.clear()
        if headroom is not None:
            fragile.fill(filled, headroom)
        living = [i for i in ALL if i != dead]
        fragile.await_enforced(state, living)
        fragile.cluster.restart(dead)
        fragile.await_enforced(state)
        for agent in fragile.of():
            assert agent.applied is not None
            assert agent.applied["lost"] is None


@pytest.mark.accepts("F48")
def test_a_topic_that_is_compacted_hard_gives_each_starting_agent_the_whole_truth(fragile: Fleet) -> None:
    alter(
        fragile,
        ResourceType.TOPIC,
        USAGE_TOPIC,
        segment_ms="1000",
        min_cleanable_dirty_ratio="0.001",
        max_compaction_lag_ms="1000",
        delete_retention_ms="0",
    )
    fragile.fill(2, _BREACH)
    fragile.await_enforced("PAUSE")
    fragile.fill(2, _WITHIN_MARGIN)
    starting, marks = fragile.agents[1], fragile.marks()
    for _ in range(8):
        starting.kill()
        before = starting.decision
        starting.start()
        eventually(lambda before=before: starting.decision != before, f"{starting} decides")
        time.sleep(1.5)  # another segment is closed, and cleaned
    for agent in fragile.of():
        assert set(agent.states_told(marks[agent.broker_id])) <= {"PAUSE"}
        assert agent.applied_state == "PAUSE"
    records = fragile.cluster.nodes[1].layout.log_dirs[0].glob(f"{USAGE_TOPIC}-*/*.cleaned")
    assert not list(records), "no cleaning was left half-way"


@pytest.mark.accepts("F49")
def test_an_agent_out_of_descriptors_holds_its_broker_and_goes_on_by_itself(fragile: Fleet) -> None:
    agent, others = fragile.agents[3], [1, 2]
    pid, mark = agent.process.pid, agent.journal_mark()
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        eventually(
            lambda: (agent.applied or {}).get("lost") is not None,
            "its lease runs out",
            QUICK["lease_seconds"] + 60,
        )
        assert agent.applied_state == "PAUSE"
        assert agent.process.running(), agent.log_tail()
        assert agent.told("Too many open files", since=mark), agent.log_tail()
        assert all(other.applied["lost"] is None for other in fragile.of(others) if other.applied)
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    fragile.await_enforced("OPEN", timeout_seconds=120)
    assert agent.process.pid == pid


@pytest.mark.accepts("F50")
def test_an_agent_that_is_killed_at_random_moments_forgets_nothing(fragile: Fleet) -> None:
    print(f"\nseed {SEED}, {KILLS} kills")
    lots, agent = random.Random(SEED), fragile.agents[3]
    fragile.fill(3, _BREACH)
    fragile.await_enforced("PAUSE")
    fragile.fill(3, _WITHIN_MARGIN)
    marks = fragile.marks()
    for _ in range(KILLS):
        time.sleep(lots.uniform(0.0, 2.5))
        agent.kill()
        AgentStateFile(agent.state_dir / "state.json").load()
        assert agent.decision is not None
        assert agent.decision["state"] == "PAUSE"
        assert agent.applied_state == "PAUSE"
        agent.start()
    begun = (agent.decision or {}).get("decided_at")
    eventually(lambda: (agent.decision or {}).get("decided_at") != begun, "it decides once more")
    for other in fragile.of():
        assert set(other.states_told(marks[other.broker_id])) <= {"PAUSE"}, SEED
    fragile.clear()
    fragile.await_enforced("OPEN", timeout_seconds=120)


@pytest.mark.accepts("F51")
def test_everything_restarted_at_once_in_a_pause_lets_nothing_through(fragile: Fleet) -> None:
    fragile.create_topic("held")
    with fragile.produce("held", 2e6):
        eventually(lambda: fragile.landed_bytes("held") > 5e6, "it flows")
        fragile.fill(1, _BREACH)
        fragile.await_enforced("PAUSE")
        held = settled_bytes(fragile, "held")
        for process in (*fragile.of(), *fragile.cluster.brokers):
            process.stop()
        fragile.clear()
        fragile.fill(1, _WITHIN_MARGIN)
        for node in fragile.cluster.brokers:
            node.start()
        fragile.cluster.wait_until_serving()
        assert fragile.landed_bytes("held") == held, "without a decision in force, brokers hold"
        for agent in fragile.of():
            agent.start()
        fragile.await_enforced("PAUSE", timeout_seconds=120)
        assert fragile.landed_bytes("held") == held
        fragile.clear()
        fragile.await_enforced("OPEN", timeout_seconds=120)
        eventually(lambda: fragile.landed_bytes("held") > held, "it flows again")
