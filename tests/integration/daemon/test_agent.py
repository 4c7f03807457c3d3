"""An agent put together, without a reachable cluster."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from kquota.disks.server_properties import read_broker_properties
from kquota.guard.agent_state import FILE_NAME, AgentState, AgentStateFile
from kquota.guard.applied_state import AppliedState
from kquota.guard.inputs import ClusterNews
from kquota.guard.kafka_side import KafkaSide
from kquota.host.boot_clock import BootClock
from kquota.journal.journal import MessageId
from kquota.kafka.admin import AdminConnection
from kquota.kafka.config import ConfigurationError
from kquota.kafka.credentials import ClientCertificate
from kquota.kafka.delivery import DeliveryTally
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.kafka.history_producer import HistoryPublisher
from kquota.kafka.topic_check import TopicCheck
from kquota.kafka.topic_records import CaughtUp
from kquota.kafka.topics import TopicVerdict, Verdict
from kquota.service.agent import Agent
from kquota.service.metrics import AgentMetrics
from testbed.loopback.certificates import CertificateAuthority
from tests.integration.waiting import eventually
from tests.unit.guard.configured import settings_in
from tests.unit.policy.golden import complaints, sample

SAMPLE = sample("applied", "open")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name in ("kafka", "run", "broker", "state"):
        (tmp_path / name).mkdir(mode=0o755)
    (tmp_path / "server.properties").write_text(f"node.id=7\nlog.dirs={tmp_path}/kafka\n", "utf-8")
    remembered = {
        "schema_version": 1,
        "active_brokers": {"cluster_id": "c", "broker_ids": [7], "seen_at": "2026-11-20T10:00:00Z"},
        "enforce_grant": {"granted_at": "2026-11-20T10:00:00Z", "cluster_id": "c", "broker_id": 7},
    }
    (tmp_path / "state" / "state.json").write_text(json.dumps(remembered), "utf-8")
    return tmp_path


@pytest.fixture
def metrics() -> AgentMetrics:
    return AgentMetrics("1")


@pytest.fixture
def agent(directory: Path, metrics: AgentMetrics) -> Iterator[Agent]:
    settings = settings_in(directory)
    agent = Agent(settings, read_broker_properties(settings.broker.server_properties), metrics)
    yield agent
    agent.close()


def test_a_full_disk_is_enforced_before_the_cluster_was_ever_reached(
    agent: Agent, directory: Path, metrics: AgentMetrics
) -> None:
    report, entries = agent.run_cycle()
    assert report.decision is not None
    written = json.loads((directory / "run" / "decision.json").read_text("utf-8"))
    assert complaints("decision", written) == []
    assert (written["state"], written["mode"], written["cluster_id"]) == ("PAUSE", "enforce", "c")
    assert written["reasons"][0]["cause"] == "own"
    assert MessageId.STATE_CHANGED in {entry.message_id for entry in entries}
    text = generate_latest(metrics.registry).decode()
    assert "kquota_connected 0.0" in text
    assert "kquota_enforcing 1.0" in text
    assert "kquota_last_cycle_timestamp_seconds" in text


def test_a_reload_that_librdkafka_refuses_changes_nothing(agent: Agent, directory: Path) -> None:
    agent.run_cycle()
    bad = settings_in(directory, kafka={"bootstrap.servers": "127.0.0.1:1", "no.such.property": "1"})
    properties = read_broker_properties(bad.broker.server_properties)
    with pytest.raises(ConfigurationError, match=r"no\.such\.property"):
        agent.reconfigure(bad, properties)
    report, _ = agent.run_cycle()
    assert report.decision is not None
    assert report.decision.state == "PAUSE"


@pytest.mark.accepts("F34")
def test_a_reload_for_another_broker_is_refused(agent: Agent, directory: Path) -> None:
    agent.run_cycle()
    other = directory / "other.properties"
    (directory / "other").mkdir()
    other.write_text(f"node.id=8\nlog.dirs={directory}/other\n", "utf-8")
    changed = settings_in(directory, broker={"server_properties": str(other)})
    with pytest.raises(ConfigurationError, match=r"node id 8.*broker 7.*restart"):
        agent.reconfigure(changed, read_broker_properties(other))
    report, _ = agent.run_cycle()
    assert report.own is not None
    assert report.own.volumes[0].log_dirs == (f"{directory}/kafka",)


def test_a_reload_takes_limits_over_and_goes_on(agent: Agent, directory: Path) -> None:
    agent.run_cycle()
    roomy = {"hard": {"type": "MinFreeBytes", "level": 0}, "soft": {"type": "MinFreeBytes", "level": 1}}
    changed = settings_in(directory, limits=roomy)
    agent.reconfigure(changed, read_broker_properties(changed.broker.server_properties))
    report, _ = agent.run_cycle()
    assert report.own is not None
    assert [volume.headroom() for volume in report.own.volumes] == [1]
    assert report.sequence == 2, "the decision is written on, by the same instance"


@pytest.mark.accepts("A28")
def test_a_reload_does_not_forget_which_log_dirs_are_offline(agent: Agent, directory: Path) -> None:
    now = BootClock().now()
    of_now = {"boot_id": now.boot_id, "written_uptime_ms": now.uptime_ms, "broker_id": 7, "cluster_id": "c"}
    offline = {**SAMPLE, **of_now, "offline_log_dirs": [f"{directory}/kafka"]}
    (directory / "broker" / "applied.json").write_text(json.dumps(offline), "utf-8")
    (directory / "kafka").rmdir()

    def status() -> str:
        report, _ = agent.run_cycle()
        assert report.own is not None
        return report.own.volumes[0].status

    eventually(lambda: status() == "offline", "the plug-in is heard")
    settings = settings_in(directory)
    agent.reconfigure(settings, read_broker_properties(settings.broker.server_properties))
    assert status() == "offline", "before the plug-in is heard again"


def test_a_broker_s_id_can_be_given_where_server_properties_do_not_have_it(
    directory: Path, metrics: AgentMetrics
) -> None:
    settings = settings_in(
        directory, broker={"server_properties": str(directory / "server.properties"), "node_id": 9}
    )
    now = BootClock().now()
    of_now = {"boot_id": now.boot_id, "written_uptime_ms": now.uptime_ms, "broker_id": 9, "cluster_id": "c"}
    settings.applied_file.write_text(json.dumps({**SAMPLE, **of_now}), "utf-8")
    agent = Agent(settings, read_broker_properties(settings.broker.server_properties), metrics)
    try:
        report, _ = agent.run_cycle()
    finally:
        agent.close()
    assert agent.broker_id == 9
    assert isinstance(report.applied, AppliedState), "it is this broker's"
    assert json.loads(settings.decision_file.read_text("utf-8"))["broker_id"] == 9


def test_history_that_is_lost_is_counted_and_a_denial_is_told(
    agent: Agent, metrics: AgentMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally = DeliveryTally()
    monkeypatch.setattr(HistoryPublisher, "state", lambda _: tally.state())
    tally.failed(KafkaFailure(Kind.UNREACHABLE, "no broker answers"))
    tally.dropped(3)
    _, entries = agent.run_cycle()
    assert "no broker answers" not in [entry.sentence for entry in entries], "other parts log it once for all"
    tally.failed(KafkaFailure(Kind.ACL_DENIED, "WRITE is denied on topic __kquota_history"))
    tally.dropped()
    _, entries = agent.run_cycle()
    assert "WRITE is denied on topic __kquota_history" in [entry.sentence for entry in entries]
    assert "kquota_history_dropped_total 4.0" in generate_latest(metrics.registry).decode()


def test_decisions_go_on_while_the_disk_of_the_state_file_stalls(
    directory: Path, metrics: AgentMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_in(directory)
    begun, answers, save = threading.Event(), threading.Event(), AgentStateFile.save

    def stall(file: AgentStateFile, state: AgentState) -> None:
        assert threading.current_thread() is not threading.main_thread()
        begun.set()
        assert answers.wait(60)
        save(file, state)

    monkeypatch.setattr(AgentStateFile, "save", stall)
    lists = iter([frozenset(range(7, last)) for last in range(20, 7, -1)])  # one broker less each time
    monkeypatch.setattr(KafkaSide, "news", lambda *_: ClusterNews(cluster_id="c", active_brokers=next(lists)))
    agent = Agent(settings, read_broker_properties(settings.broker.server_properties), metrics)
    try:
        for number in range(1, 11):
            agent.run_cycle()
            written = json.loads(settings.decision_file.read_text("utf-8"))
            assert written["sequence"] == number, "the decision is renewed"
        assert begun.wait(60)
        answers.set()
    finally:
        agent.close()
    state, _ = AgentStateFile(settings.state_dir / FILE_NAME).load()
    assert state.active_brokers is not None
    assert state.active_brokers.broker_ids == (7, 8, 9, 10), "the last one at the end"


def test_a_reload_reads_what_was_written_just_before(
    agent: Agent, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KafkaSide, "gather", lambda *_args, **_options: [CaughtUp(0)])
    agent.run_cycle()
    agent.run_cycle()
    settings = settings_in(directory)
    agent.reconfigure(settings, read_broker_properties(settings.broker.server_properties))
    state, _ = AgentStateFile(settings.state_dir / FILE_NAME).load()
    assert list(state.remembered_volumes) == [f"{directory}/kafka"]


def test_a_state_file_that_is_gone_at_a_reload_is_no_first_start(
    agent: Agent, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KafkaSide, "gather", lambda *_args, **_options: [CaughtUp(0)])
    agent.run_cycle()
    agent.run_cycle()
    settings = settings_in(directory)
    properties = read_broker_properties(settings.broker.server_properties)
    agent.reconfigure(settings, properties)
    (settings.state_dir / FILE_NAME).unlink()
    agent.reconfigure(settings, properties)
    assert list(agent._local.state.remembered_volumes) == [f"{directory}/kafka"]


def test_a_state_file_that_can_not_be_written_is_told(
    agent: Agent, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KafkaSide, "gather", lambda *_args, **_options: [CaughtUp(0)])
    (directory / "state").rename(directory / "gone")
    eventually(
        lambda: any("state.json can't be written" in entry.sentence for entry in agent.run_cycle()[1]),
        "it is logged",
    )


def test_the_certificate_is_read_beside_the_cycles(
    directory: Path, metrics: AgentMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = datetime(2027, 1, 15, 8, tzinfo=UTC)

    def read(_: AdminConnection) -> ClientCertificate:
        assert threading.current_thread() is not threading.main_thread(), "reading it starts a process"
        return ClientCertificate("agent.pem", "CN=agent", ends, ends)

    def look(_: TopicCheck) -> TopicVerdict:
        return TopicVerdict("t", Verdict.OK, "it is fine")

    monkeypatch.setattr(AdminConnection, "client_certificate", read)
    monkeypatch.setattr(TopicCheck, "look", look)
    settings = settings_in(directory)
    agent = Agent(settings, read_broker_properties(settings.broker.server_properties), metrics)

    def expiry() -> float | None:
        agent.run_cycle()
        return metrics.registry.get_sample_value("kquota_client_certificate_expiry_timestamp_seconds")

    try:
        eventually(lambda: expiry() == ends.timestamp(), "its end is a metric")
    finally:
        agent.close()


@pytest.mark.accepts("F22")
def test_rotated_credentials_that_can_not_be_used_are_told_while_the_old_client_goes_on(
    directory: Path, metrics: AgentMetrics
) -> None:
    identity = CertificateAuthority(directory / "certificates").issue("kquota-agent-7")
    good = identity.key.read_bytes()
    files = {
        "security.protocol": "ssl",
        "ssl.certificate.location": str(identity.certificate),
        "ssl.key.location": str(identity.key),
    }
    settings = settings_in(directory, kafka={"bootstrap.servers": "127.0.0.1:1", **files})
    agent = Agent(settings, read_broker_properties(settings.broker.server_properties), metrics)
    told: list[str] = []

    def tells(beginning: str) -> bool:
        _, entries = agent.run_cycle()
        told.extend(entry.sentence for entry in entries)
        return any(sentence.startswith(beginning) for sentence in told)

    try:
        agent.run_cycle()
        identity.key.write_bytes(b"-----BEGIN PRIVATE KEY-----\nonly a beg")
        eventually(lambda: tells("The credential files cannot be used"), "it is logged")
        # An agent without a client would give this for the reason why it can't be reached.
        tells("")
        assert len([sentence for sentence in told if "credential files" in sentence]) == 1
        identity.key.write_bytes(good)
        eventually(lambda: tells("over: The credential files cannot be used"), "it is over")
    finally:
        agent.close()


def test_a_broken_state_file_is_told_and_loosens_nothing(directory: Path, metrics: AgentMetrics) -> None:
    (directory / "state" / "state.json").write_text("{", "utf-8")
    settings = settings_in(directory)
    agent = Agent(settings, read_broker_properties(settings.broker.server_properties), metrics)
    try:
        _, entries = agent.run_cycle()
    finally:
        agent.close()
    (told,) = [entry for entry in entries if entry.message_id is MessageId.STATE_FILE_BROKEN]
    assert "state.json is broken" in told.sentence
    assert (directory / "state" / "state.json.corrupt").exists()
