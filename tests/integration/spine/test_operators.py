"""Operators' orders and questions, with the command line, to a real cluster."""

from __future__ import annotations

import json
import re
import signal
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kquota.policy.timestamps import format_utc, parse_utc
from tests.integration.spine.agents import uptime_ms
from tests.integration.spine.fleet import GONE_BROKERS, HISTORY_TOPIC, ORDERS_TOPIC, SOON_STALE_SECONDS, Fleet
from tests.integration.spine.terminal import Terminal
from tests.integration.waiting import eventually
from tests.unit.policy.golden import complaints
from tests.unit.wording import say

STRANGER = GONE_BROKERS[1]


def hold_in_force(fleet: Fleet) -> list[Any]:
    return [agent.decision["hold"] for agent in fleet.of() if agent.decision is not None]


def history(fleet: Fleet, kind: str) -> list[dict[str, Any]]:
    records = [json.loads(message.value() or b"") for message in fleet.records(HISTORY_TOPIC)]
    return [record for record in records if record["Kind"] == kind]


def test_a_hold_at_pause_stops_the_whole_cluster_until_it_is_released(fleet: Fleet) -> None:
    agent = fleet.agents[2]
    marks = fleet.marks()
    arguments = ("--for", "10m", "--reason", "moving racks", "--actor", "alice")
    said = agent.order("hold", "pause", *arguments)
    assert re.fullmatch(r"the cluster is held at pause until \S+Z\n", said)
    fleet.await_enforced("PAUSE")
    until = said.split()[-1]
    expected = {"action": "pause", "until": until, "reason": "moving racks", "actor": "alice"}
    assert hold_in_force(fleet) == [expected] * 3
    sentence = (
        f"PAUSE: {say('held', action='pause', actor='alice', until=until, reason='moving racks')} [enforcing]"
    )
    for other in fleet.of():
        eventually(
            lambda other=other: ("WARNING", sentence) in other.journal(marks[other.broker_id]), "it is logged"
        )
        other.await_metric(1, "kquota_hold_active", action="pause")
        labels = {"order": "hold", "broker": "", "action": "pause"}
        labels |= {"actor": "alice", "reason": "moving racks"}
        ends_at = other.metric("kquota_order_until_timestamp_seconds", **labels)
        assert ends_at == pytest.approx(parse_utc(until).timestamp(), abs=1)
    check = agent.cli("check")
    assert check.returncode == 2
    assert check.stdout.startswith(f"KQUOTA CRITICAL - {sentence.removesuffix(' [enforcing]')}")
    why, end, exempt = agent.order("explain").splitlines()
    assert why == f"{sentence.removesuffix(' [enforcing]')}."
    assert end.endswith("kquota hold release.")
    assert "User:" in exempt, "who is not held"

    assert agent.order("hold", "release", "--reason", "done", "--actor", "bob") == "the hold is released\n"
    fleet.await_enforced("OPEN")
    assert hold_in_force(fleet) == [None] * 3
    for other in fleet.of():
        other.await_entry(
            "WARNING", say("hold-released", actor="bob", reason="done"), since=marks[other.broker_id]
        )
    order = {"Action": "pause", "Until": until, "Reason": "moving racks", "Actor": "alice"}
    expected_bodies = [
        {"Key": "hold", "Order": order},
        {"Key": "hold", "Order": None, "Actor": "bob", "Reason": "done"},
    ]
    eventually(
        lambda: [r["Body"] for r in history(fleet, "operator")][-2:] == expected_bodies,
        "both orders are history",
    )


def test_an_order_is_history_though_the_agent_of_the_lowest_broker_is_down(fleet: Fleet) -> None:
    fleet.agents[1].stop()
    fleet.agents[2].order("hold", "release", "--reason", "no agent of 1 reads it", "--actor", "bob")
    body = {"Key": "hold", "Order": None, "Actor": "bob", "Reason": "no agent of 1 reads it"}
    eventually(
        lambda: [r["BrokerId"] for r in history(fleet, "operator") if r["Body"] == body] == [2],
        "the next one writes it",
    )


def test_a_hold_ends_by_itself(fleet: Fleet) -> None:
    marks = fleet.marks()
    # Long enough for every agent to hear of it before it is over.
    fleet.agents[1].order("hold", "pause", "--for", "8s", "--reason", "a short one")
    for agent in fleet.of():
        eventually(
            lambda agent=agent: agent.states_told(marks[agent.broker_id]) == ["PAUSE", "OPEN"],
            "it was held and is so no longer",
        )


def test_a_hold_at_open_outranks_everything_but_a_broker_s_own_breach(fleet: Fleet) -> None:
    fleet.fill(3, headroom=-0.2)
    fleet.await_enforced("PAUSE")
    fleet.agents[1].order("hold", "open", "--for", "10m", "--reason", "we know better")
    fleet.await_enforced("OPEN", [1, 2])
    # Each agent hears of the order in its own time, and only then may it disobey.
    eventually(
        lambda: [reason["cause"] for reason in fleet.agents[3].decision["reasons"]] == ["hard", "hold"],
        "broker 3 has heard of it",
    )
    assert fleet.agents[3].applied_state == "PAUSE"
    fleet.agents[1].order("hold", "release")
    fleet.await_enforced("PAUSE")


def test_a_quarantined_broker_has_no_vote_except_on_itself(fleet: Fleet) -> None:
    fleet.fill(3, headroom=-0.2)
    fleet.await_enforced("PAUSE")
    agent = fleet.agents[1]
    said = agent.order("quarantine", "3", "--for", "1h", "--reason", "wrong figures")
    assert said.startswith("broker 3 is in quarantine until ")
    fleet.await_enforced("OPEN", [1, 2])
    last = fleet.agents[3].decision["sequence"]
    eventually(lambda: fleet.agents[3].decision["sequence"] > last, "broker 3 has decided again")
    assert fleet.agents[3].applied_state == "PAUSE"
    status = json.loads(agent.cli("status", "--json").stdout)
    assert status["state"] == "OPEN"
    assert [broker["quarantine"] is not None for broker in status["brokers"]] == [False, False, True]
    assert agent.order("quarantine", "3", "--end") == "the quarantine of broker 3 is ended\n"
    fleet.await_enforced("PAUSE")


def test_in_maintenance_a_report_stays_fresh_and_the_lease_runs_on(fleet: Fleet) -> None:
    for other in fleet.of([1, 3]):
        other.reload(staleness_seconds=SOON_STALE_SECONDS)
    agent = fleet.agents[2]
    agent.order("maintenance", "--for", "5m", "--reason", "a new kernel")
    begun_ms = uptime_ms()
    eventually(
        lambda: agent.decision["valid_until_uptime_ms"] - begun_ms > 200_000, "the lease lasts for minutes"
    )
    marks = fleet.marks()
    agent.stop()
    last = fleet.usage_of(2)[-1][1]["SnapshotAt"]

    def age_seconds() -> float:
        status = json.loads(fleet.agents[1].cli("status", "--json").stdout)
        broker = status["brokers"][1]
        assert broker["snapshot_at"] == last
        assert broker["maintenance"]["reason"] == "a new kernel"
        return float(broker["age_seconds"])

    eventually(lambda: age_seconds() > SOON_STALE_SECONDS + 1, "the report is older than the threshold")
    assert agent.applied_state == "OPEN", "the decision holds without the agent"
    for other in fleet.of([1, 3]):
        assert other.state == "OPEN"
        assert set(other.states_told(marks[other.broker_id])) <= {"OPEN"}, "no agent has fallen back"
    fleet.agents[1].order("maintenance", "--broker", "2", "--end")
    fleet.await_enforced("PAUSE", [1, 3])
    agent.start()
    fleet.await_enforced("OPEN")


@pytest.mark.accepts("F12", "A26")
def test_a_dead_broker_s_verdict_stays_until_it_is_decommissioned(fleet: Fleet) -> None:
    agent = fleet.agents[1]
    record = fleet.usage_of(3)[-1][1]
    capacity = record["Volumes"][0]["Capacity"]
    gone = {"VolumeName": "/dev/gone", "Capacity": capacity, "Consumed": capacity}
    fleet.put(str(STRANGER), record | {"Volumes": [gone], "SnapshotAt": "2026-01-01T00:00:00Z"})
    fleet.await_enforced("PAUSE")
    assert [a.decision["reasons"][0]["broker_id"] for a in fleet.of()] == [STRANGER] * 3
    assert [a.decision["undetermined"] for a in fleet.of()] == [[]] * 3

    marks = fleet.marks()
    arguments = ("--reason", "host sold", "--actor", "alice")
    assert agent.order("decommission", str(STRANGER), *arguments) == f"broker {STRANGER} is decommissioned\n"
    fleet.await_enforced("OPEN")
    sentence = say("decommissioned", broker=STRANGER, actor="alice", reason="host sold")
    for other in fleet.of():
        other.await_entry("WARNING", sentence, since=marks[other.broker_id])
    record = fleet.records(ORDERS_TOPIC)[-1]
    assert record.key() == f"decommission/{STRANGER}".encode()
    assert json.loads(record.value() or b"") == {"Reason": "host sold", "Actor": "alice"}
    gone = [m.value() for m in fleet.records() if m.key() == str(STRANGER).encode()]
    assert gone[-1] is not None, "operators need no permission for the usage topic"
    noted = eventually(
        lambda: [r for r in history(fleet, "operator") if r["Body"]["Key"] == str(STRANGER)], "it is history"
    )
    assert [r["BrokerId"] for r in noted] == [1], "one of the agents writes it down"
    status = json.loads(agent.cli("status", "--json").stdout)
    assert [broker["broker_id"] for broker in status["brokers"]] == [1, 2, 3]
    again = agent.cli("decommission", str(STRANGER), "--reason", "twice")
    assert (again.returncode, again.stderr) == (2, f"kquota: broker {STRANGER} has no report to forget\n")


def test_an_active_broker_is_not_decommissioned_by_mistake(fleet: Fleet) -> None:
    refused = fleet.agents[1].cli("decommission", "2", "--reason", "oops")
    assert refused.returncode == 2
    assert refused.stderr == "kquota: broker 2 is active: stop it first, or use --force\n"


@pytest.mark.accepts("A15")
def test_status_and_explain_say_that_the_agent_on_this_host_has_decided_otherwise(fleet: Fleet) -> None:
    stuck, other = fleet.agents[1], fleet.agents[2]
    assert json.loads(stuck.cli("status", "--json").stdout)["disagreement"] is None
    stuck.process.send(signal.SIGSTOP)
    try:
        other.order("hold", "pause", "--for", "10m", "--reason", "moving racks")
        eventually(lambda: (other.decision or {}).get("state") == "PAUSE", "the others have decided")
        status = json.loads(stuck.cli("status", "--json").stdout)
        explained = stuck.order("explain")
    finally:
        stuck.process.send(signal.SIGCONT)
    sentence = f"The agent on this host has decided otherwise: OPEN: {say('calm')}."
    assert complaints("status", status) == []
    assert status["state"] == "PAUSE"
    assert status["disagreement"].startswith(sentence)
    assert sentence in explained
    other.order("hold", "release")
    fleet.await_enforced("OPEN")
    eventually(
        lambda: json.loads(stuck.cli("status", "--json").stdout)["disagreement"] is None,
        "it has read what it missed",
    )


@pytest.mark.accepts("A15")
def test_status_shows_brokers_volumes_limits_and_what_is_applied(fleet: Fleet) -> None:
    fleet.fill(3, headroom=0.5)
    fleet.await_enforced("THROTTLE")
    agent = fleet.agents[3]
    eventually(
        lambda: fleet.usage_of(3)[-1][1]["Applied"]["State"] == "THROTTLE", "it has reported what is applied"
    )
    done = agent.cli("status", "--json")
    assert done.returncode == 0
    status = json.loads(done.stdout)
    assert complaints("status", status) == []
    assert status["state"] == "THROTTLE"
    assert status["factor"] == pytest.approx(0.5, abs=0.01)
    assert status["cluster_id"] == fleet.cluster.cluster_id
    assert status["problems"] == []
    assert [(b["broker_id"], b["active"], b["undetermined"]) for b in status["brokers"]] == [
        (1, True, None),
        (2, True, None),
        (3, True, None),
    ]
    assert [len([v for v in b["volumes"] if v["role"] == "data"]) for b in status["brokers"]] == [1, 2, 1]
    volume = next(v for v in status["brokers"][2]["volumes"] if v["role"] == "data")
    capacity = fleet.disk(3).capacity_bytes()
    assert volume["volume"] == fleet.disk(3).device
    assert volume["log_dirs"] == [str(path) for path in fleet.cluster.nodes[3].layout.log_dirs]
    assert volume["soft_bytes"] == pytest.approx(0.5 * capacity, abs=1)
    assert volume["hard_bytes"] == pytest.approx(0.8 * capacity, abs=1)
    assert volume["headroom"] == pytest.approx(0.5, abs=0.01)
    assert status["brokers"][2]["applied"]["State"] == "THROTTLE"
    local = status["local"]
    assert (local["broker_id"], local["decision"]["state"]) == (3, "THROTTLE")
    assert 0 < local["lease_seconds_left"] <= agent.settings["lease_seconds"]
    assert local["applied"]["mechanism"] == "governor"

    shown = agent.cli("status")
    assert shown.returncode == 0
    assert shown.stdout.startswith("THROTTLE to 0.")
    assert fleet.disk(3).device in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 100
    decided = agent.cli("decision")
    assert decided.returncode == 0
    assert "broker 3 (this host): applies THROTTLE (enforce, by governor)" in decided.stdout
    check = agent.cli("check")
    assert check.returncode == 1
    assert re.search(r"\| applied_factor=0\.\d+;;;0;1 factor=0\.\d+;;;0;1 lease=[\d.]+s;;;0", check.stdout)


def test_check_is_ok_when_open_and_critical_when_the_lease_has_ended(fleet: Fleet) -> None:
    agent = fleet.agents[1]
    fine = agent.cli("check")
    assert fine.returncode == 0, fine.stdout
    assert fine.stdout.startswith(f"KQUOTA OK - OPEN: {say('calm')} |")
    assert agent.cli("decision").returncode == 0
    agent.reload(lease_seconds=4)
    eventually(
        lambda: agent.decision["valid_until_uptime_ms"] < uptime_ms() + 5_000, "its lease has become short"
    )
    agent.kill()
    ended = eventually(
        lambda: (done := agent.cli("check")).returncode == 2 and done, "the lease of a dead agent ends"
    )
    assert "is the agent running?" in ended.stdout or "the plug-in has no decision" in ended.stdout
    eventually(lambda: agent.cli("decision").returncode == 1, "there is no decision in force")


def test_an_unreachable_cluster_is_said_and_what_is_known_is_shown(fleet: Fleet) -> None:
    agent = fleet.agents[1]
    elsewhere = agent.layout.directory / "elsewhere.yml"
    text = agent.config.read_text("utf-8")
    elsewhere.write_text(re.sub(r"bootstrap\.servers: \S+", "bootstrap.servers: 127.0.0.1:1", text))
    agent.config, good = elsewhere, agent.config
    try:
        done = agent.cli("status", "--json", "--timeout", "3")
    finally:
        agent.config = good
    assert done.returncode == 1
    status = json.loads(done.stdout)
    assert status["state"] == "PAUSE", "what is not known is not fine"
    assert {entry["cause"] for entry in status["undetermined"]} == {"not-read", "no-broker-list"}
    assert status["local"]["decision"]["state"] == "OPEN", "this host's own files are shown"
    assert any("127.0.0.1:1" in problem for problem in status["problems"])


def test_a_watched_status_obeys_keys_and_leaves_the_terminal_as_it_was(fleet: Fleet) -> None:
    fleet.fill(2, headroom=0.5)
    fleet.await_enforced("THROTTLE")
    with Terminal(fleet.agents[2], "status", "--watch", columns=100, lines=30) as terminal:
        terminal.await_text("decided THROTTLE")
        terminal.await_text("applied by 3 of 3 brokers")
        terminal.await_text("▶ ")
        terminal.press("s")
        terminal.await_text("least left first")
        terminal.press("?")
        terminal.await_text("q quit")
        terminal.press(" ")
        terminal.await_text("frozen at")
        terminal.press("q")
        assert terminal.wait() == 0
        assert terminal.on_alternate_screen == [True, False]
        assert terminal.echoes


@pytest.mark.accepts("G11")
def test_an_order_on_the_usage_topic_does_nothing_and_each_agent_says_so(fleet: Fleet) -> None:
    until = format_utc(datetime.now(UTC) + timedelta(minutes=10))
    sentence = say("order-on-the-usage-topic", key="hold")
    marks = fleet.marks()
    fleet.put("hold", {"Action": "pause", "Until": until, "Reason": "of an agent", "Actor": "alice"})
    for other in fleet.of():
        eventually(
            lambda agent=other: ("WARNING", sentence) in agent.journal(marks[agent.broker_id]),
            f"{other} reports the order on the usage topic",
        )
        eventually(
            lambda agent=other: (agent.metric("kquota_records_total", result="wrong_topic") or 0) >= 1,
            "the record is counted",
        )
    assert [one.state for one in fleet.of()] == ["OPEN", "OPEN", "OPEN"]
