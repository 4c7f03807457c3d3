"""The agent's edges on its own machine, with real files and directories."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kquota.disks.probe import LogDirLook, LogDirSampler
from kquota.disks.server_properties import read_broker_properties
from kquota.formats.records import REGULAR
from kquota.guard.agent_state import ActiveBrokers, AgentState, AgentStateFile
from kquota.guard.applied_state import AppliedState, AppliedUnknown
from kquota.guard.broker_host import BrokerHost
from kquota.guard.inputs import Moment
from kquota.guard.own_record import own_record
from kquota.guard.state_writer import StateWriter
from kquota.host.boot_clock import BootClock
from kquota.kafka.delivery import Headers
from kquota.policy.decision import Scope
from kquota.settings.model import Settings
from tests.integration.waiting import eventually
from tests.unit.guard.cycles import START
from tests.unit.policy.golden import complaints, sample

SAMPLE = sample("applied", "open")


class Machine:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log_dir = directory / "kafka"
        for name in ("kafka", "run", "broker", "state"):
            (directory / name).mkdir(mode=0o755)
        properties = directory / "server.properties"
        properties.write_text(f"node.id=7\nlog.dirs={self.log_dir}\n", "utf-8")
        self.settings = Settings(
            broker={"server_properties": str(properties)},
            kafka={"bootstrap.servers": "x:1"},
            decision_file=str(directory / "run" / "decision.json"),
            applied_file=str(directory / "broker" / "applied.json"),
            state_dir=str(directory / "state"),
        )
        self.state_file = AgentStateFile(directory / "state" / "state.json")
        self.states = StateWriter(self.state_file)
        self.published: list[tuple[bytes, bytes, Headers]] = []
        self.boot_clock = BootClock()
        self.side = self.start()

    def start(self, state: AgentState | None = None) -> BrokerHost:
        return BrokerHost(
            self.settings,
            read_broker_properties(self.settings.broker.server_properties),
            self.states,
            state or self.state_file.load()[0],
            lambda *record: self.published.append(record),
            "kquota-7-",
        )

    def say(self, seen_at: Moment, **changes: Any) -> None:
        """Write an applied state, as the plug-in does."""
        now = Moment.now(self.boot_clock).boot
        seen = {
            "principal": "User:CN=agent",
            "client_ids": ["kquota-7-admin"],
            "last_seen_uptime_ms": seen_at.boot.uptime_ms,
        }
        of_now = {"boot_id": now.boot_id, "written_uptime_ms": now.uptime_ms, "broker_id": 7}
        document = {**SAMPLE, **of_now, "cluster_id": "c", "exempt": [seen], **changes}
        self.settings.applied_file.write_text(json.dumps(document), "utf-8")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    machine.side.close()
    machine.states.close(60)


def test_it_publishes_the_volumes_it_sees_under_its_broker_s_id(machine: Machine) -> None:
    machine.side.wait_for_volumes(60)
    seen = machine.side.observe()
    (volume,) = seen.volumes
    assert volume.log_dirs == (str(machine.log_dir),)
    settings = machine.settings
    record = own_record(
        seen.volumes, settings.limits, (), release_margin=settings.release_margin_ratio, snapshot_at=START
    )
    machine.side.publish(
        record, {"State": "OPEN", "Factor": 1.0, "Sequence": 1, "Mechanism": "none"}, is_news=True
    )
    machine.side.publish(record, None, is_news=False)
    (key, value, marks), (_, _, marks_of_regular) = machine.published
    assert key == b"7"
    assert (marks, marks_of_regular) == ((), (REGULAR,))
    document = json.loads(value)
    assert complaints("usage", document) == []
    assert document["Volumes"][0]["Capacity"] == volume.capacity_bytes
    assert document["Applied"]["State"] == "OPEN"


@pytest.mark.parametrize(("scope", "is_named"), [(Scope.VOLUME, True), (Scope.CLUSTER, False)])
def test_a_missing_right_to_list_is_warned_of_with_what_it_means_for_the_scope(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, scope: Scope, is_named: bool
) -> None:
    latest = LogDirSampler.latest

    def refused(sampler: LogDirSampler) -> dict[str, LogDirLook]:  # root may list everything
        return {name: replace(look, list_errno=errno.EACCES) for name, look in latest(sampler).items()}

    machine.side.close()
    machine.settings = machine.settings.model_copy(update={"scope": scope})
    monkeypatch.setattr(LogDirSampler, "latest", refused)
    machine.side = machine.start()
    machine.side.wait_for_volumes(60)
    (warning,) = [warning for warning in machine.side.observe().warnings if "listed" in warning]
    assert ("all producers are held" in warning) is is_named


def test_volumes_brokers_and_the_grant_are_remembered(machine: Machine) -> None:
    machine.side.wait_for_volumes(60)
    machine.side.observe()
    machine.side.recall(())
    machine.side.observe()
    machine.side.remember_grant("c", Moment.now(machine.boot_clock))
    machine.side.remember_brokers(ActiveBrokers("c", (1, 7), START))
    assert machine.states.settle(60)
    state, problem = machine.state_file.load()
    assert problem is None
    assert list(state.remembered_volumes) == [str(machine.log_dir)]
    assert state.granted_for(7) == "c"
    assert state.active_brokers == ActiveBrokers("c", (1, 7), START)
    before = machine.state_file.path.stat().st_mtime_ns
    machine.side.remember_brokers(ActiveBrokers("c", (1, 7), Moment.now(machine.boot_clock).wall))
    assert machine.states.settle(60)
    assert machine.state_file.path.stat().st_mtime_ns == before, "the same brokers are no news"


def test_what_can_not_be_written_is_a_problem_and_not_the_end(machine: Machine) -> None:
    assert machine.side.write({"state": "OPEN"}) is None
    assert "not JSON" in str(machine.side.write({"factor": float("nan")}))
    assert json.loads(machine.settings.decision_file.read_text("utf-8")) == {"state": "OPEN"}
    (machine.directory / "run" / "decision.json").unlink()
    (machine.directory / "run").rmdir()
    error = machine.side.write({"state": "OPEN"})
    assert error is not None
    assert error.startswith(f"the decision file {machine.settings.decision_file} can't be written: ")


def test_remembered_volumes_that_can_not_be_read_are_said(machine: Machine) -> None:
    side = machine.start(AgentState(remembered_volumes={"/x": "nonsense"}))
    assert "the last report shows where each log dir belongs" in side.problems["remembered volumes"]
    side.close()


@pytest.mark.accepts("F32")
def test_only_what_the_plug_in_saw_since_our_start_proves_that_we_are_exempt(machine: Machine) -> None:
    earlier = Moment.now(machine.boot_clock)
    machine.side.close()
    machine.side = machine.start()
    machine.say(earlier)
    applied, verification = machine.side.applied(Moment.now(machine.boot_clock), "c")
    assert isinstance(applied, AppliedState)
    assert not verification.verified, "that was an earlier agent, perhaps under another name"
    assert verification.contradicted
    machine.say(Moment.now(machine.boot_clock))
    assert machine.side.applied(Moment.now(machine.boot_clock), "c")[1].verified
    applied, verification = machine.side.applied(Moment.now(machine.boot_clock), "another cluster")
    assert isinstance(applied, AppliedUnknown)
    assert (verification.verified, verification.contradicted) == (False, False)


@pytest.mark.accepts("A28")
def test_log_dirs_the_plug_in_reports_offline_stay_so_until_it_is_heard_again(machine: Machine) -> None:
    machine.side.wait_for_volumes(60)
    machine.say(Moment.now(machine.boot_clock), offline_log_dirs=[str(machine.log_dir)])
    machine.side.applied(Moment.now(machine.boot_clock), "c")
    assert machine.side.observe().volumes[0].status == "offline"
    machine.settings.applied_file.unlink()
    machine.side.applied(Moment.now(machine.boot_clock), "c")
    assert machine.side.observe().volumes[0].status == "offline"
    machine.say(Moment.now(machine.boot_clock))
    machine.side.applied(Moment.now(machine.boot_clock), "c")
    assert machine.side.observe().volumes[0].status == "ok"


@pytest.mark.accepts("A28")
def test_log_dirs_that_are_not_the_broker_s_are_not_judged(machine: Machine) -> None:
    machine.side.wait_for_volumes(60)
    ours = machine.log_dir.stat()
    other = machine.directory.stat()

    def seen(*log_dirs: dict[str, object]) -> tuple[str, str]:
        machine.say(Moment.now(machine.boot_clock), log_dirs=list(log_dirs))
        machine.side.applied(Moment.now(machine.boot_clock), "c")
        (volume,) = machine.side.observe().volumes
        return volume.status, str(volume.reason)

    same = {"path": str(machine.log_dir), "device": ours.st_dev, "inode": ours.st_ino}
    assert seen(same)[0] == "ok"
    status, reason = seen({"path": "/data/2/kafka"})
    assert (status, reason[:40]) == ("failed", "the broker uses /data/2/kafka, not among")
    status, reason = seen({**same, "device": other.st_dev, "inode": other.st_ino})
    assert status == "failed"
    assert "another directory at this path" in reason
    machine.settings.applied_file.unlink()
    machine.side.applied(Moment.now(machine.boot_clock), "c")
    assert machine.side.observe().volumes[0].status == "failed", "until the plug-in is heard again"
    assert seen(same)[0] == "ok"


@pytest.mark.accepts("A28")
def test_without_the_plug_in_the_broker_s_process_shows_its_log_dirs(machine: Machine) -> None:
    machine.side.close()
    waits = "import sys; print('started', flush=True); sys.stdin.read()"
    properties = machine.settings.broker.server_properties
    options = ("kafka.Kafka", properties, "--override", "log.dirs=/data/2/kafka")
    with subprocess.Popen(
        [sys.executable, "-c", waits, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline() == b"started\n"
        machine.side = machine.start()
        machine.side.wait_for_volumes(60)
        eventually(lambda: machine.side.observe().volumes[0].status == "failed")
        (volume,) = machine.side.observe().volumes
        assert str(volume.reason).startswith("the broker uses /data/2/kafka, not among")
        ours = machine.log_dir.stat()
        same = {"path": str(machine.log_dir), "device": ours.st_dev, "inode": ours.st_ino}
        machine.say(Moment.now(machine.boot_clock), log_dirs=[same])
        machine.side.applied(Moment.now(machine.boot_clock), "c")
        assert machine.side.observe().volumes[0].status == "ok", "the plug-in's report counts"
        broker.kill()


def test_log_dirs_that_the_broker_has_not_formatted_fail_while_it_is_up(machine: Machine) -> None:
    machine.side.wait_for_volumes(60)
    assert machine.side.observe().volumes[0].status == "ok", "before its first start"
    assert machine.side.observe(is_active=True).volumes[0].status == "failed"
    (machine.log_dir / "meta.properties").touch()
    eventually(lambda: machine.side.observe(is_active=True).volumes[0].status == "ok")
