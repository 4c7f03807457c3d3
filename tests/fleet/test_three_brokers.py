"""Three brokers on hosts of their own: restarts, hosts without power, a cluster that was away.

Test follows test.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testbed.hosts.fleet import Fleet
from testbed.hosts.host import Host
from testbed.hosts.rollout import (
    AGENT,
    BROKER,
    OPERATOR,
    REPOSITORY,
    PlayFailed,
    applied,
    decision,
    journal,
    metrics,
    now,
    play,
    property_of,
    wait_for,
)
from testbed.hosts.spec import VolumeSpec
from tests.fleet.conftest import MakeKafka

DATA = "/data/1"
VOLUMES = (
    VolumeSpec(path=DATA, size_mebibytes=128),
    VolumeSpec(path="/data/2", size_mebibytes=128),
    VolumeSpec(path="/data/metadata", size_mebibytes=64),
)
NAMES = ("broker-1", "broker-2", "broker-3")
STALENESS_SECONDS, JOIN_GRACE_SECONDS = 25, 30

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@dataclass(frozen=True)
class RolledOut:
    """The hosts, and what an operator runs for them."""

    fleet: Fleet
    inventory: Path
    packages: Path

    def play(self, name: str, **given: object) -> str:
        """Run one of the playbooks."""
        settings = {"staleness_seconds": STALENESS_SECONDS, "join_grace_seconds": JOIN_GRACE_SECONDS}
        return play(
            self.inventory,
            REPOSITORY / f"playbooks/{name}.yml",
            kquota_dist_dir=str(self.packages),
            kquota_agent_settings=settings,
            **given,
        )


@pytest.fixture(scope="module")
def rolled_out(make_kafka: MakeKafka, packages: Path) -> RolledOut:
    """Brokers with kquota rolled out on them, enforcing; so quick that a test need not wait for long."""
    fleet, inventory = make_kafka(NAMES, "trixie", VOLUMES)
    made = RolledOut(fleet, inventory, packages)
    made.play("rollout")
    return made


@pytest.fixture(scope="module")
def fleet(rolled_out: RolledOut) -> Fleet:
    return rolled_out.fleet


@pytest.fixture(autouse=True)
def _well(fleet: Fleet) -> Iterator[None]:
    """Each test finds and leaves all brokers open and enforcing."""
    everywhere(fleet, "OPEN")
    yield
    everywhere(fleet, "OPEN")


def everywhere(fleet: Fleet, state: str, names: tuple[str, ...] = NAMES) -> None:
    for name in names:
        wait_for(
            lambda host=fleet[name]: applied(host),
            lambda seen: (seen.get("mode"), seen.get("state")) == ("enforce", state),
        )


def status(host: Host) -> dict[str, Any]:
    """The output of `kquota status`, or nothing while the cluster can't be read."""
    done = host.run("kquota", "status", "--json", check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def is_active(host: Host, broker_id: int) -> bool | None:
    known = {broker["broker_id"]: broker["active"] for broker in status(host).get("brokers", [])}
    return known.get(broker_id)


def await_replicas(host: Host) -> None:
    """Wait until every replica is in sync, as one does before the next broker is restarted."""
    ask = (
        *("/opt/kafka/bin/kafka-topics.sh", "--bootstrap-server", f"{host.name}:9093"),
        *("--command-config", "/etc/kafka/admin.properties", "--describe", "--under-replicated-partitions"),
    )
    wait_for(
        lambda: host.run(*ask, check=False), lambda done: (done.returncode, done.stdout.strip()) == (0, "")
    )


def states_told(host: Host, since: str) -> set[str]:
    """The states that the agent's journal has logged since then."""
    lines = journal(host, f"--after-cursor={since}").splitlines()
    return {
        state for line in lines for state in ("OPEN", "THROTTLE", "PAUSE") if line.startswith(f"{state}:")
    }


def stay_open(fleet: Fleet, names: tuple[str, ...], seconds: float) -> None:
    """Check for this long whether a state other than OPEN is applied anywhere."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert {name: applied(fleet[name]).get("state") for name in names} == dict.fromkeys(names, "OPEN")
        time.sleep(0.5)


@pytest.mark.accepts("F14")
def test_a_rolling_restart_of_every_broker_neither_pauses_nor_flaps(fleet: Fleet):
    marks = {name: now(fleet[name]) for name in NAMES}
    for number, name in enumerate(NAMES, start=1):
        host, other = fleet[name], fleet[NAMES[number % 3]]
        started = applied(host)["started_uptime_ms"]
        host.run("systemctl", "restart", BROKER)
        wait_for(
            lambda host=host: applied(host),
            lambda seen, started=started: seen["started_uptime_ms"] > started and seen["lost"] is None,
        )
        wait_for(lambda other=other, number=number: is_active(other, number), lambda active: active is True)
        await_replicas(other)
    for name in NAMES:
        assert states_told(fleet[name], marks[name]) <= {"OPEN"}
        assert decision(fleet[name])["undetermined"] == []


@pytest.mark.accepts("F31")
def test_a_host_that_boots_for_longer_than_reports_are_fresh_pauses_nobody(fleet: Fleet):
    others = ("broker-1", "broker-2")
    host = fleet["broker-3"]
    marks = {name: now(fleet[name]) for name in others}
    host.power_off()
    wait_for(lambda: is_active(fleet["broker-1"], 3), lambda active: active is False)
    stay_open(fleet, others, STALENESS_SECONDS + 5)
    host.start()
    host.wait_until_booted()
    wait_for(lambda: is_active(fleet["broker-1"], 3), lambda active: active is True)
    everywhere(fleet, "OPEN")
    for name in others:
        assert states_told(fleet[name], marks[name]) <= {"OPEN"}


@pytest.mark.accepts("F31")
def test_a_broker_that_joins_before_its_agent_pauses_nobody_within_the_join_grace(fleet: Fleet):
    others = ("broker-1", "broker-2")
    host = fleet["broker-3"]
    host.run("systemctl", "stop", BROKER, AGENT)
    wait_for(lambda: is_active(fleet["broker-1"], 3), lambda active: active is False)
    stay_open(fleet, others, STALENESS_SECONDS + 1)
    host.run("systemctl", "start", BROKER)
    joined = time.monotonic()
    wait_for(lambda: is_active(fleet["broker-1"], 3), lambda active: active is True)
    stay_open(fleet, others, JOIN_GRACE_SECONDS - 5 - (time.monotonic() - joined))
    # Grace has an end: a broker of which nothing is known for longer than that is undetermined.
    seen = wait_for(lambda: decision(fleet["broker-1"]), lambda found: found["state"] == "PAUSE")
    assert {(entry["broker_id"], entry["cause"]) for entry in seen["undetermined"]} == {(3, "stale")}
    host.run("systemctl", "start", AGENT)


@pytest.mark.accepts("A26", "A14")
def test_the_verdict_of_a_full_broker_survives_its_death_and_a_restart_of_the_cluster(fleet: Fleet):
    others = ("broker-1", "broker-2")
    full = fleet["broker-3"]
    ballast = full.volumes[DATA].fill(leave_bytes=5 * 2**20)
    try:
        everywhere(fleet, "PAUSE")
        full.power_off()
        wait_for(lambda: is_active(fleet["broker-1"], 3), lambda active: active is False)
        time.sleep(STALENESS_SECONDS)
        for name in others:
            assert [reason["broker_id"] for reason in decision(fleet[name])["reasons"]] == [3]
        for name in others:
            fleet[name].run("systemctl", "kill", "--signal=KILL", BROKER)
            fleet[name].run("systemctl", "stop", BROKER)
        wait_for(lambda: metrics(fleet["broker-1"])["kquota_connected"], lambda value: value == 0)
        wait_for(
            lambda: sum(
                value
                for metric, value in metrics(fleet["broker-1"]).items()
                if metric.startswith("kquota_publish_errors_total")
            ),
            lambda count: count > 0,
        )
        wait_for(lambda: journal(fleet["broker-1"], "--lines=100"), lambda text: "cannot be reached" in text)
        # An agent without a memory of its own knows it from the topic alone.
        fleet["broker-2"].run("systemctl", "stop", AGENT)
        fleet["broker-2"].run("rm", "-rf", "/var/lib/kquota/", "/run/kquota/decision.json")
        for name in others:
            fleet[name].run("systemctl", "start", BROKER)
        fleet["broker-2"].run("systemctl", "start", AGENT)
        for name in others:
            found = wait_for(
                lambda name=name: decision(fleet[name]),
                lambda seen: seen.get("state") == "PAUSE" and seen["undetermined"] == [],
            )
            assert [reason["broker_id"] for reason in found["reasons"]] == [3]
        everywhere(fleet, "PAUSE", others)
    finally:
        ballast.unlink()
    full.start()
    full.wait_until_booted()


def test_the_cluster_is_shown_while_the_first_host_of_the_inventory_is_away(rolled_out: RolledOut):
    host = rolled_out.fleet["broker-1"]
    host.power_off()
    try:
        said = rolled_out.play("status")
    finally:
        host.start()
        host.wait_until_booted()
    shown = said.split("TASK [Show the status of the cluster]", 1)[1].split("TASK [", 1)[0]
    assert any(state in shown for state in ("OPEN", "PAUSE")), said


@pytest.mark.accepts("G18")
def test_plays_and_orders_work_while_the_first_host_is_dead_and_name_it(rolled_out: RolledOut):
    fleet, others = rolled_out.fleet, ("broker-2", "broker-3")
    named = r"on 1 of 3 hosts:\s+broker-1: it could not be reached"
    dead = fleet["broker-1"]
    dead.power_off()
    try:
        wait_for(lambda: is_active(fleet["broker-2"], 1), lambda active: active is False)
        with pytest.raises(PlayFailed, match=named):
            rolled_out.play("set_mode", kquota_mode="observe")
        for name in others:
            wait_for(lambda name=name: applied(fleet[name]).get("mode"), lambda mode: mode == "observe")
            wait_for(lambda name=name: decision(fleet[name]).get("mode"), lambda mode: mode == "observe")
        order = ("--reason", "a dead host", *OPERATOR)
        fleet["broker-2"].run("kquota", "hold", "open", "--for", "10m", *order)
        wait_for(lambda: status(fleet["broker-3"]).get("orders"), bool)
        fleet["broker-2"].run("kquota", "hold", "release", *order)
        with pytest.raises(PlayFailed, match=named):
            rolled_out.play("rollout", kquota_mode="")
        # A restart would take the controllers' majority away, so that nothing is restarted.
        processes = [property_of(fleet[name], BROKER, "MainPID") for name in others]
        with pytest.raises(PlayFailed, match=r"there\s+is\s+no\s+majority"):
            rolled_out.play("rollback", kquota_roll_retries=2)
        assert [property_of(fleet[name], BROKER, "MainPID") for name in others] == processes
    finally:
        dead.start()
        dead.wait_until_booted()
    rolled_out.play("rollback")
    for name in NAMES:
        assert "org.kquota" not in fleet[name].read("/etc/kafka/server.properties")
    rolled_out.play("rollout")


def test_a_broker_that_runs_is_not_decommissioned_and_keeps_its_agent(rolled_out: RolledOut):
    with pytest.raises(PlayFailed, match=r"runs\s+on\s+broker-3:"):
        rolled_out.play("decommission", kquota_decommission_id=3, kquota_decommission_reason="a slip")
    assert property_of(rolled_out.fleet["broker-3"], AGENT, "ActiveState") == "active"
    assert property_of(rolled_out.fleet["broker-3"], AGENT, "UnitFileState") == "enabled"


def test_a_roll_back_brings_a_broker_back_that_does_not_start_with_the_plug_in(rolled_out: RolledOut):
    fleet = rolled_out.fleet
    broken = fleet["broker-3"]
    jars = "/usr/share/java"
    broken.run("sh", "-c", f"mkdir {jars}/away && mv {jars}/kquota-callback* {jars}/away/")
    broken.run("systemctl", "kill", "--signal=KILL", BROKER)
    wait_for(lambda: is_active(fleet["broker-1"], 3), lambda active: active is False)
    wait_for(lambda: int(property_of(broken, BROKER, "NRestarts")), lambda restarts: restarts > 2)
    rolled_out.play("rollback")
    for name in NAMES:
        assert "org.kquota" not in fleet[name].read("/etc/kafka/server.properties")
        assert property_of(fleet[name], BROKER, "ActiveState") == "active"
    await_replicas(fleet["broker-1"])
    broken.run("sh", "-c", f"mv {jars}/away/* {jars}/ && rmdir {jars}/away")
    rolled_out.play("rollout")
