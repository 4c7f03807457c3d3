"""The agent as a service: its notifications, its connections, and the effect of a bad configuration."""

from __future__ import annotations

import re
import shutil
import signal
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException

from testbed.loopback.certificates import principal_of
from testbed.loopback.clients import admin_client, create_topic
from testbed.loopback.plug_in import agent_name
from tests.integration.spine.agents import AgentProcess, read_json
from tests.integration.spine.fleet import Fleet
from tests.integration.waiting import eventually
from tests.unit.wording import say


def remote_ports(pid: int) -> set[int]:
    """The ports that a process and its children have connections to."""
    process = psutil.Process(pid)
    connections = process.net_connections("tcp")
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # some live for a moment only
            connections += child.net_connections("tcp")
    return {
        connection.raddr.port
        for connection in connections
        if connection.raddr and connection.status == psutil.CONN_ESTABLISHED
    }


def listening_addresses(pid: int) -> set[tuple[str, int]]:
    return {
        (connection.laddr.ip.removeprefix("::ffff:"), connection.laddr.port)
        for connection in psutil.Process(pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }


@pytest.mark.accepts("A13")
def test_agents_use_client_certificates_on_the_internal_listener_alone(fleet: Fleet) -> None:
    internal = {node.ports.internal for node in fleet.cluster.brokers}
    for broker_id, agent in fleet.agents.items():
        ports = eventually(
            lambda agent=agent: remote_ports(agent.process.pid) - {agent.metrics_port}, "it has connections"
        )
        assert ports <= internal
        assert agent.applied is not None
        seen = {entry["principal"]: entry["client_ids"] for entry in agent.applied["exempt"]}
        client_ids = seen[principal_of(agent_name(broker_id))]
        assert any(client_id.startswith(f"kquota-{broker_id}-") for client_id in client_ids)
    configuration = fleet.cluster.client_configuration(agent_name(1))
    admin_client(configuration).list_topics(timeout=60)
    nameless = {
        name: value
        for name, value in configuration.items()
        if name not in ("ssl.certificate.location", "ssl.key.location")
    }
    with pytest.raises(KafkaException):
        admin_client(nameless).list_topics(timeout=5)


@pytest.mark.accepts("A27")
def test_nothing_but_kafka_s_own_listeners_is_needed(fleet: Fleet) -> None:
    for node in fleet.cluster.brokers:
        ports = {port for _, port in listening_addresses(node.pid)}
        assert ports == {node.ports.clients, node.ports.internal, node.ports.controller}, "no JMX port"
    for agent in fleet.of():
        assert listening_addresses(agent.process.pid) == {("127.0.0.1", agent.metrics_port)}
        assert agent.applied_state == "OPEN"


def test_systemd_hears_of_start_state_cycles_reload_and_stop(fleet: Fleet) -> None:
    agent = fleet.agents[1]
    before_the_stop = len(agent.notifications.heard)
    agent.stop()
    # It is the last of the former process, and may be read after its end.
    eventually(
        lambda: any("STOPPING" in message for message in agent.notifications.heard[before_the_stop:]),
        "it says that it stops",
    )
    heard = len(agent.notifications.heard)
    agent.start()
    ready = eventually(
        lambda: next((m for m in agent.notifications.heard[heard:] if m.get("READY") == "1"), None),
        "it is ready",
    )
    assert ready["STATUS"].startswith(f"OPEN: {say('calm')} [enforcing")
    before = agent.notifications.heard[heard : agent.notifications.heard.index(ready)]
    assert {message["STATUS"] for message in before if "STATUS" in message} <= {say("starting")}, (
        "until then it shows what it waits for"
    )
    eventually(
        lambda: sum(m.get("WATCHDOG") == "1" for m in agent.notifications.heard[heard:]) >= 10,
        "the watchdog is petted by cycles",
    )
    fleet.fill(3, headroom=-0.2)
    status = f"PAUSE: {say('over-hard', volume=fleet.disk(3).device, broker=3)} [enforcing]"
    eventually(lambda: agent.notifications.heard[-1].get("STATUS") == status, "the status is the sentence")

    mark = len(agent.notifications.heard)
    agent.reload()
    reload = eventually(
        lambda: [m for m in agent.notifications.heard[mark:] if "RELOADING" in m or "READY" in m],
        "systemd hears of the reload",
    )
    assert "MONOTONIC_USEC" in reload[0]
    eventually(
        lambda: any(m.get("READY") == "1" for m in agent.notifications.heard[mark:]), "the reload is complete"
    )
    assert agent.stop() == 0
    eventually(lambda: any(m.get("STOPPING") == "1" for m in agent.notifications.heard[mark:]), "it says so")


def test_an_agent_that_reaches_no_cluster_is_ready_with_a_fallback(fleet: Fleet) -> None:
    agent = fleet.agents[2]
    agent.stop()
    kafka = agent.settings["kafka"]
    try:
        agent.write_config(kafka={**kafka, "bootstrap.servers": "127.0.0.1:1"})
        heard = len(agent.notifications.heard)
        agent.start()
        ready = eventually(
            lambda: next((m for m in agent.notifications.heard[heard:] if m.get("READY") == "1"), None),
            "it is ready although it knows nothing",
        )
        assert ready["STATUS"].startswith(f"PAUSE: fallback, because {say('unknown-no-broker-list')}")
        fleet.await_enforced("PAUSE", [2])
        agent.await_metric(0, "kquota_connected")
        undetermined = {
            dict(labels)["cause"] for (name, labels) in agent.metrics() if name == "kquota_undetermined"
        }
        assert undetermined == {"not-read", "no-broker-list"}
        eventually(lambda: agent.told("127.0.0.1:1"), "the address is logged")
    finally:
        agent.kill()


@pytest.mark.accepts("F34")
def test_a_bad_configuration_is_reported_and_the_last_good_one_kept(fleet: Fleet) -> None:
    agent = fleet.agents[1]
    good = agent.config.read_text("utf-8")
    marks = fleet.marks()

    def refused(mark: int) -> bool:
        sentences = [sentence for level, sentence in agent.journal(mark) if level == "ERROR"]
        return any("staleness_seconds" in sentence for sentence in sentences)

    bad = re.sub(r"staleness_seconds: \S+", "staleness_seconds: soon", good)
    agent.config.write_text(bad, "utf-8")
    agent.process.send(signal.SIGHUP)
    eventually(lambda: refused(marks[1]), "the bad file is reported")
    eventually(lambda: agent.metric("kquota_config_last_good") == 1, "a metric says so")
    assert (agent.metric("kquota_config_reload_failures_total") or 0) >= 1
    assert not agent.told(say("configuration-reread"), since=marks[1])
    assert agent.state == "OPEN"

    agent.stop()
    mark = agent.journal_mark()
    agent.start()
    eventually(lambda: agent.told("OPEN: ", since=mark), "it starts with the last good configuration")
    assert refused(mark)
    agent.await_metric(1, "kquota_config_last_good")
    check = agent.cli("config", "check")
    assert check.returncode == 78
    assert "staleness_seconds" in check.stderr
    assert "soon" in check.stderr

    agent.config.write_text(good, "utf-8")
    agent.reload()
    agent.await_metric(0, "kquota_config_last_good")
    assert set(agent.states_told(marks[1])) == {"OPEN"}


@pytest.mark.accepts("F34")
def test_a_bad_configuration_at_the_first_start_is_refused(fleet: Fleet, tmp_path: Path) -> None:
    agent = fleet.agents[1]
    bad = tmp_path / "agent.yml"
    text = re.sub(r"state_dir: \S+", f"state_dir: {tmp_path}", agent.config.read_text("utf-8"))
    bad.write_text(text.replace("mode: enforce", "mode: enfroce"), "utf-8")
    agent.config, config = bad, agent.config
    try:
        done = agent.cli("run")
    finally:
        agent.config = config
    assert done.returncode == 78
    assert f"{bad} line " in done.stderr
    assert "enfroce" in done.stderr


@pytest.mark.accepts("F22", "A14")
def test_an_expired_certificate_is_named_counted_and_replaced_without_a_restart(fleet: Fleet) -> None:
    agent = fleet.agents[1]
    pid = agent.process.pid
    mark = agent.journal_mark()
    reported = fleet.usage_of(1)[-1][1]["Sequence"]
    # Rotation replaces files that the client has read already: it takes up the overwritten content.
    fleet.cluster.authority.issue(agent_name(1), lifetime=timedelta(hours=-1))
    try:
        eventually(
            lambda: any("expired" in s for _, s in agent.journal(mark)), "the journal says what is wrong"
        )
        eventually(
            lambda: sum(v for (n, _), v in agent.metrics().items() if n == "kquota_kafka_errors_total") > 0,
            "a metric counts it",
        )
    finally:
        fleet.cluster.authority.issue(agent_name(1))
    eventually(lambda: fleet.usage_of(1)[-1][1]["Sequence"] > reported + 3, "it reports on")
    eventually(lambda: agent.metric("kquota_connected") == 1, "it is connected")
    assert agent.process.running()
    assert agent.process.pid == pid


@pytest.mark.accepts("F32")
def test_an_agent_that_is_not_exempt_is_refused_enforce_and_holds_nobody(
    fleet: Fleet, topic_name: str
) -> None:
    agent = fleet.agents[3]
    create_topic(admin_client(fleet.cluster.client_configuration()), topic_name, [[3]])
    agent.stop()
    shutil.rmtree(agent.state_dir)
    agent.state_dir.mkdir()
    agent.write_config(kafka=fleet.cluster.client_configuration("stranger"))
    mark = agent.journal_mark()
    agent.start()
    eventually(lambda: agent.told("OPEN: ", since=mark), "it has decided")
    fleet.fill(3, headroom=-0.2)
    fleet.await_decided("PAUSE")
    assert agent.decision["mode"] == "observe"
    agent.await_metric(0, "kquota_enforcing")
    agent.await_metric(1, "kquota_state", state="PAUSE")
    applied = eventually(
        lambda: (found := agent.applied)["state"] == "PAUSE" and found, "the plug-in reports it, too"
    )
    assert (applied["mode"], applied["mechanism"]) == ("observe", "none")
    with fleet.produce(topic_name, 4e6) as load:
        eventually(lambda: load.latest and load.latest.bytes > 12e6, "producers flow")
        # A busy machine may hold the producer up for a while.
        eventually(lambda: load.rate_bytes_per_second(2.0) > 0.5 * 4e6, "no producer is held on that broker")
    refusal = (
        "mode: observing, enforce is refused: the broker's plug-in has not seen a client kquota-3-… as exempt"
    )
    assert [level for level, _ in agent.told(refusal, since=mark)] == ["WARNING"], "it is logged, once"
    fleet.await_enforced("PAUSE", [1, 2])


def test_what_it_remembers_is_for_its_own_eyes(fleet: Fleet) -> None:
    agent: AgentProcess = fleet.agents[1]
    state = read_json(agent.state_dir / "state.json")
    assert state is not None
    assert state["enforce_grant"]["cluster_id"] == fleet.cluster.cluster_id
    assert state["active_brokers"]["broker_ids"] == [1, 2, 3]
    modes = set[int]()
    for path in agent.state_dir.iterdir():
        with suppress(FileNotFoundError):  # a file that was about to replace another one
            modes.add(path.stat().st_mode & 0o077)
    assert modes == {0}
