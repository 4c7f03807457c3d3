"""Brokers that restart, die and stay away: verdicts stay, and no broker falls back without need."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.loopback.clients import admin_client, create_topic
from testbed.loopback.plug_in import broker_files
from testbed.loopback.runtime import KafkaRuntime
from tests.integration.spine.fleet import QUICK, Fleet
from tests.integration.waiting import eventually
from tests.unit.wording import say


@pytest.fixture(scope="module")
def mortal(kafka_runtime: KafkaRuntime, callback_jar: Path) -> Iterator[Fleet]:
    """Three brokers that may be killed, and disks that may fail; the tests come in this order."""
    settings = {**QUICK, "staleness_seconds": 25, "join_grace_seconds": 10}
    # A replica whose log dir has failed holds up the usage topic until it is dropped from the in-sync ones.
    properties = {"replica.lag.time.max.ms": "5000"}
    volumes = {1: 1, 2: 1, 3: 2}
    with Fleet(kafka_runtime, callback_jar, volumes, settings=settings, properties=properties) as fleet:
        for agent in fleet.of():
            agent.start()
        fleet.await_enforced("OPEN")
        yield fleet


@pytest.mark.long
@pytest.mark.accepts("F14")
def test_a_rolling_restart_of_every_broker_neither_pauses_nor_flaps(mortal: Fleet) -> None:
    marks = mortal.marks()
    for node in mortal.cluster.brokers:
        agent = mortal.agents[node.node_id]
        node.stop()
        mortal.cluster.restart(node.node_id)
        eventually(
            lambda agent=agent: agent.applied["sequence"] == agent.decision["sequence"],
            "the new plug-in applies the present decision",
        )
        eventually(
            lambda: all(agent.metric("kquota_connected") == 1 for agent in mortal.of()),
            "agents are connected",
        )
    for broker_id, agent in mortal.agents.items():
        assert set(agent.states_told(marks[broker_id])) <= {"OPEN"}
        assert agent.decision is not None
        assert agent.decision["undetermined"] == []
        assert agent.applied_state == "OPEN"
        modes = agent.told("mode: ", since=marks[broker_id])
        assert len(modes) <= 4, f"logged once, not at every cycle: {modes}"


@pytest.mark.long
@pytest.mark.accepts("F25")
def test_a_broker_without_a_decision_boots_into_its_fallback_and_its_agent_ends_it(mortal: Fleet) -> None:
    node, agent = mortal.cluster.nodes[2], mortal.agents[2]
    assert agent.stop() == 0
    node.stop()
    broker_files(node.layout).decision.unlink()
    mortal.cluster.restart(2)
    applied = eventually(
        lambda: (found := agent.applied) is not None and found["lost"] is not None and found,
        "the plug-in says that it has no decision",
    )
    assert (applied["state"], applied["mode"], applied["mechanism"]) == ("PAUSE", "enforce", "governor")
    before = mortal.usage_of(2)[-1][0]
    agent.start()
    mortal.await_enforced("OPEN")
    eventually(lambda: mortal.usage_of(2)[-1][0] > before, "it could publish")


@pytest.mark.accepts("F13", "A26", "A15", "A18")
def test_a_full_broker_that_dies_keeps_its_verdict(mortal: Fleet) -> None:
    survivors = [1, 2]
    mortal.fill(3, headroom=-0.2)
    mortal.await_enforced("PAUSE")
    marks = mortal.marks()
    mortal.cluster.nodes[3].kill()
    mortal.agents[3].kill()

    def age_of_the_dead_seconds() -> float:
        status = json.loads(mortal.agents[1].cli("status", "--json").stdout)
        dead = status["brokers"][2]
        return float(dead["age_seconds"]) if dead["active"] is False else 0.0

    time.sleep(mortal.agents[1].settings["staleness_seconds"])
    eventually(
        lambda: age_of_the_dead_seconds() > mortal.agents[1].settings["staleness_seconds"],
        "its report is older than the threshold, and it is inactive",
    )
    waited = mortal.agents[3].cli("status", "--until-active", "--timeout", "3")
    assert (waited.returncode, waited.stderr) == (1, "kquota: broker 3 is not active after 3 s\n")
    for broker_id in survivors:
        agent = mortal.agents[broker_id]
        assert agent.applied_state == "PAUSE"
        assert agent.decision["reasons"][0] == {
            "broker_id": 3,
            "volume": mortal.disk(3).device,
            "cause": "hard",
            "headroom": 0,
        }
        assert agent.decision["undetermined"] == []
        assert set(agent.states_told(marks[broker_id])) <= {"PAUSE"}


@pytest.mark.accepts("A26", "A16", "A14")
def test_a_restart_of_the_whole_cluster_loses_nothing(mortal: Fleet) -> None:
    survivors = [1, 2]
    marks = mortal.marks()
    for broker_id in survivors:
        mortal.cluster.nodes[broker_id].kill()
    agents = mortal.of(survivors)
    for agent in agents:
        eventually(lambda agent=agent: agent.metric("kquota_connected") == 0, "a metric says so")
        eventually(
            lambda agent=agent: (agent.metric("kquota_publish_errors_total", reason="unreachable") or 0) > 0,
            "failed publications are counted",
        )
        eventually(
            lambda agent=agent: agent.told("cannot be reached", since=marks[agent.broker_id]), "it is logged"
        )
    written = [agent.decision["sequence"] for agent in agents]
    eventually(
        lambda: all(
            agent.decision["sequence"] > before for agent, before in zip(agents, written, strict=True)
        ),
        "the lease is renewed without a cluster",
    )
    # One of the agents goes through all of it; the other one's host has been reinstalled.
    mortal.agents[2].kill()
    shutil.rmtree(mortal.agents[2].state_dir)
    mortal.agents[2].state_dir.mkdir()
    broker_files(mortal.agents[2].layout).decision.unlink()
    for broker_id in survivors:
        mortal.cluster.nodes[broker_id].start()
    mortal.cluster.wait_until_serving(survivors)
    mortal.agents[2].start()
    mortal.await_enforced("PAUSE", survivors)

    def verdicts() -> list[object]:
        decisions = [agent.decision or {} for agent in agents]
        return [(d["state"], d["reasons"][0]["broker_id"], d["undetermined"]) for d in decisions]

    eventually(lambda: verdicts() == [("PAUSE", 3, [])] * 2, "the dead broker's verdict is still there")
    for agent in agents:
        assert set(agent.states_told(marks[agent.broker_id])) <= {"PAUSE"}
        eventually(lambda agent=agent: agent.metric("kquota_connected") == 1, "it is connected again")

    mortal.clear()
    mortal.cluster.nodes[3].start()
    until_active = ("status", "--until-active", "--timeout", "120", "--json")
    waited = mortal.agents[3].cli(*until_active, timeout=180)
    assert waited.returncode == 0, waited.stderr
    found = json.loads(waited.stdout)
    assert [one["broker_id"] for one in found["brokers"] if one["active"]] == [1, 2, 3]
    mortal.cluster.wait_until_serving([3])
    mortal.agents[3].start()
    mortal.await_enforced("OPEN")


@pytest.mark.long
@pytest.mark.accepts("F11", "A31")
def test_to_remove_the_report_of_a_broker_that_has_just_come_back_opens_nothing(mortal: Fleet) -> None:
    """Its agent stays down, so that the state without a report lasts."""
    others = mortal.of([1, 2])
    for agent in others:
        agent.reload(join_grace_seconds=600)
    mortal.fill(3, headroom=-0.2)
    mortal.await_enforced("PAUSE")
    mortal.agents[3].kill()
    mortal.cluster.nodes[3].kill()
    marks = mortal.marks()

    def is_active() -> bool:
        status = json.loads(mortal.agents[1].cli("status", "--json").stdout)
        return bool(status["brokers"][2]["active"])

    eventually(lambda: not is_active(), "the cluster misses the broker")
    mortal.cluster.nodes[3].start()
    mortal.cluster.wait_until_serving([3])
    eventually(
        lambda: any("3" in mortal.usage_of(agent.broker_id)[-1][1].get("Joined", {}) for agent in others),
        "its return is on the topic",
    )
    mortal.put("3", None)
    unknown = [{"broker_id": 3, "cause": "tombstone"}]
    eventually(lambda: [agent.decision["undetermined"] for agent in others] == [unknown] * 2, "it is missed")
    for agent in others:
        assert set(agent.states_told(marks[agent.broker_id])) <= {"PAUSE"}
    mortal.clear()
    mortal.agents[3].start()
    mortal.await_enforced("OPEN")


@pytest.mark.accepts("A28", "F17")
def test_a_log_dir_that_the_broker_has_taken_offline_has_no_vote(mortal: Fleet) -> None:
    agent = mortal.agents[3]
    node, volume = mortal.cluster.nodes[3], mortal.disk(3, 2)
    device = volume.device
    mortal.fill(3, headroom=-0.2, number=2)
    mortal.await_enforced("PAUSE")
    mark = agent.journal_mark()
    subprocess.run(["xfs_io", "-x", "-c", "shutdown", str(volume.mount_point)], check=True)
    # Only a write shows the broker that the disk is gone: new partitions go to the emptier log dir.
    admin = admin_client(mortal.cluster.client_configuration())
    create_topic(admin, "spread", [[1, 3]] * 8)
    applied = eventually(
        lambda: (found := agent.applied)["offline_log_dirs"] and found, "the plug-in reports the log dir"
    )
    assert applied["offline_log_dirs"] == [str(node.layout.log_dirs[1])]
    begun = time.monotonic()
    mortal.await_enforced("OPEN")
    print(f"its vote was gone {time.monotonic() - begun:.1f} s after the plug-in had reported it")
    assert node.running()
    assert [one.decision["undetermined"] for one in mortal.of()] == [[]] * 3
    reported = mortal.usage_of(3)[-1][1]["Volumes"]
    assert {v["VolumeName"]: v.get("Status", "ok") for v in reported}[device] == "offline"
    labels = {"volume": device, "mount_point": str(volume.mount_point), "role": "data", "status": "offline"}
    agent.await_metric(1, "kquota_volume_status", **labels)
    sentence = say("volume-offline", volume=device)
    told = eventually(lambda: agent.told(sentence, since=mark), "it is logged")
    assert [level for level, _ in told] == ["WARNING"]
