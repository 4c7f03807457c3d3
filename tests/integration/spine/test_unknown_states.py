"""Agents that end, start and fall silent; records that others write or remove."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kquota.policy.timestamps import format_utc
from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.fleet import QUICK, SOON_STALE_SECONDS, Fleet
from tests.integration.waiting import eventually
from tests.unit.wording import say


def undetermined(fleet: Fleet, broker_id: int) -> list[dict[str, Any]]:
    decision = fleet.agents[broker_id].decision
    return [] if decision is None else decision["undetermined"]


def snapshot(fleet: Fleet, broker_id: int, age_seconds: float) -> dict[str, Any]:
    """The broker's last record, as if it were a snapshot so old; from an agent of its own."""
    record = fleet.usage_of(broker_id)[-1][1]
    at = datetime.now(UTC) - timedelta(seconds=age_seconds)
    return record | {"SnapshotAt": format_utc(at), "InstanceId": "a test"}


@pytest.mark.accepts("F2", "A16")
def test_a_killed_agent_comes_back_without_a_flap(fleet: Fleet) -> None:
    agent = fleet.agents[1]
    marks = fleet.marks()
    agent.kill()
    last = agent.decision["decided_at"]  # type: ignore[index]
    assert agent.applied_state == "OPEN", "the lease covers the gap"
    agent.start()
    eventually(lambda: agent.told("OPEN: ", since=marks[1]), "it has decided")
    eventually(lambda: agent.applied["sequence"] == agent.decision["sequence"], "the plug-in has heard")
    assert agent.decision["decided_at"] > last
    for broker_id, other in fleet.agents.items():
        assert set(other.states_told(marks[broker_id])) <= {"OPEN"}
        assert other.applied is not None
        assert other.applied["lost"] is None
    assert agent.states_told(marks[1]) == ["OPEN"]


@pytest.mark.accepts("A16", "A9")
def test_a_new_agent_rebuilds_the_state_from_the_topic_alone(fleet: Fleet) -> None:
    fleet.fill(3, headroom=-0.2)
    fleet.await_enforced("PAUSE")
    agent = fleet.agents[1]
    expected = agent.decision
    assert expected is not None
    agent.stop()
    shutil.rmtree(agent.state_dir)
    agent.state_dir.mkdir()
    (agent.layout.directory / "kquota" / "decision.json").unlink()
    mark = agent.journal_mark()
    agent.start()
    keys = ("state", "factor", "reasons", "undetermined", "cluster_id")
    eventually(
        lambda: (found := agent.decision) and [found[key] for key in keys] == [expected[key] for key in keys],
        "it has decided the same",
    )
    eventually(lambda: agent.states_told(mark), "it has logged its first decision")
    assert agent.states_told(mark) == ["PAUSE"], "it was never anything else"
    fleet.await_enforced("PAUSE", [1])


@pytest.mark.accepts("A30", "F2")
def test_a_latch_survives_a_restart_and_ends_above_the_release_margin(fleet: Fleet) -> None:
    agent = fleet.agents[3]
    fleet.fill(3, headroom=-0.05)
    fleet.await_enforced("PAUSE")
    latched = [{"broker_id": 3, "volume": fleet.disk(3).device, "cause": "latched", "headroom": 0}]
    fleet.fill(3, headroom=0.06)
    eventually(
        lambda: all(a.decision["reasons"] == latched for a in fleet.of()),
        "every broker knows that the volume is only latched",
    )
    marks = fleet.marks()
    agent.kill()
    before = fleet.usage_of(3)[-1][1]["InstanceId"]
    agent.start()
    eventually(lambda: agent.told("PAUSE: ", since=marks[3]), "it has decided")

    def new_reports() -> list[dict[str, Any]] | None:
        last_three = [record for _, record in fleet.usage_of(3)[-3:]]
        new = [record for record in last_three if record["InstanceId"] != before]
        return new if len(new) >= 2 else None

    reports = eventually(new_reports, "it has reported twice since")
    device = fleet.disk(3).device
    volumes = [volume for record in reports for volume in record["Volumes"]]
    assert {v.get("Latched") for v in volumes if v["VolumeName"] == device} == {"HARD"}
    for broker_id, other in fleet.agents.items():
        assert set(other.states_told(marks[broker_id])) <= {"PAUSE"}, "the restart released nothing"
    fleet.fill(3, headroom=0.16)
    fleet.await_enforced("THROTTLE")


@pytest.mark.accepts("A18", "A19", "A20")
def test_a_silent_agent_makes_the_others_fall_back_and_metrics_name_its_broker(fleet: Fleet) -> None:
    others = fleet.of([1, 3])
    for agent in others:
        agent.reload(staleness_seconds=SOON_STALE_SECONDS)
    marks = fleet.marks()
    fleet.agents[2].stop()
    fleet.await_enforced("PAUSE", [1, 3])
    stale = [{"broker_id": 2, "cause": "stale"}]
    for agent in others:

        def names_it_alone(agent: AgentProcess = agent) -> dict[str, Any] | None:
            decision = agent.decision
            return decision if decision is not None and decision["undetermined"] == stale else None

        # On a busy machine reports of other brokers may be late, too, for a moment.
        decision = eventually(names_it_alone, "only broker 2 is not known")
        assert decision["fallback"] is True
        assert [reason["cause"] for reason in decision["reasons"]] == ["fallback"]
        agent.await_metric(1, "kquota_undetermined", broker="2", cause="stale")
        agent.await_metric(1, "kquota_fallback")
        agent.await_metric(1, "kquota_state", state="PAUSE")
        sentence = say("unknown-stale", broker=2)
        agent.await_entry("WARNING", sentence, since=marks[agent.broker_id])

    for agent in others:
        agent.reload(fallback_action="open")
    fleet.await_enforced("OPEN", [1, 3])
    for agent in others:
        assert agent.decision["fallback"] is True
        agent.await_metric(1, "kquota_undetermined", broker="2", cause="stale")
        agent.await_metric(0, "kquota_fallback")  # no producer is held

    # Freshness is that of the snapshot, not of the record: the broker itself stamps this one with now.
    fleet.put("2", snapshot(fleet, 2, age_seconds=0))
    eventually(lambda: undetermined(fleet, 1) == undetermined(fleet, 3) == [], "it is known for a moment")
    fleet.put("2", snapshot(fleet, 2, age_seconds=3600))
    eventually(lambda: undetermined(fleet, 1) == undetermined(fleet, 3) == stale, "an old snapshot is stale")
    for agent in others:
        agent.await_metric(1, "kquota_undetermined", broker="2", cause="stale")


@pytest.mark.accepts("A18", "G6")
def test_a_silent_agent_pauses_no_producer_before_its_disk_could_be_full(fleet: Fleet) -> None:
    ceiling = QUICK["fill_floor_bytes_per_second"]  # the zone of 322 MB lasts for 16 s at that rate
    silent, others = fleet.agents[2], fleet.of([1, 3])
    disk, hard_bytes = fleet.disk(2), round(0.8 * fleet.disk(2).capacity_bytes())
    for agent in fleet.of():
        agent.reload(staleness_seconds=SOON_STALE_SECONDS, fallback_action="bounded")
    fleet.fill(2, headroom=2)
    begun_bytes = disk.consumed_bytes()

    def reported() -> bool:
        volume = volume_of(fleet.usage_of(2)[-1][1], disk.mount_point)
        return volume.get("FillCeiling") == ceiling and volume["Consumed"] >= begun_bytes

    eventually(reported, "the present figures and their bound are reported")
    silent.kill()
    last = fleet.usage_of(2)[-1][1]
    reported_at = datetime.fromisoformat(last["SnapshotAt"])
    marks = fleet.marks()

    def fill_at_the_bound() -> None:
        # A busy machine decides up to two seconds late.
        seconds = (datetime.now(UTC) - reported_at).total_seconds() - 2
        most_bytes = volume_of(last, disk.mount_point)["Consumed"] + ceiling * max(0, seconds)
        zone_bytes = 0.3 * disk.capacity_bytes()
        fleet.fill(2, headroom=(hard_bytes - most_bytes) / zone_bytes)

    def all_pause() -> bool:
        if any(agent.state != "PAUSE" for agent in others):
            assert disk.consumed_bytes() < hard_bytes, "full, and not every broker is paused"
            fill_at_the_bound()
        return all(agent.state == "PAUSE" for agent in others)

    eventually(all_pause, "the bound has reached the hard limit")
    waited_seconds = (datetime.now(UTC) - reported_at).total_seconds()
    print(
        f"paused {waited_seconds:.1f} s after the last report; silence counts from {SOON_STALE_SECONDS} s on"
    )
    assert waited_seconds > 2 * SOON_STALE_SECONDS
    for agent in others:
        assert [entry["broker_id"] for entry in agent.decision["covered"]] == [2]
        assert agent.decision["undetermined"] == []
        assert agent.metric("kquota_covered_until_timestamp_seconds", broker="2") is not None
        sentence = "broker 2, which is silent, may be over its hard limit by now"
        eventually(lambda: agent.told(sentence, since=marks[agent.broker_id]), sentence)  # noqa: B023
        assert agent.states_told(marks[agent.broker_id])[-2:] == ["THROTTLE", "PAUSE"]
    fleet.clear()
    silent.start()
    fleet.await_enforced("OPEN")
    for agent in others:
        assert "covered" not in agent.decision


def volume_of(record: dict[str, Any], mount_point: Path) -> dict[str, Any]:
    """A report's volume that is mounted there."""
    (volume,) = [volume for volume in record["Volumes"] if volume["MountPoint"] == str(mount_point)]
    return dict(volume)


@pytest.mark.accepts("A18")
def test_falling_back_to_open_forgets_no_breach_that_was_known(fleet: Fleet) -> None:
    others = fleet.of([1, 3])
    for agent in others:
        agent.reload(staleness_seconds=SOON_STALE_SECONDS, fallback_action="open")
    fleet.fill(2, headroom=-0.2)
    fleet.await_enforced("PAUSE")
    fleet.agents[2].kill()
    fleet.clear()
    stale = [{"broker_id": 2, "cause": "stale"}]
    eventually(lambda: undetermined(fleet, 1) == undetermined(fleet, 3) == stale, "its report is stale")
    for agent in others:
        assert agent.state == "PAUSE", "silence never releases"
        assert agent.decision["reasons"][0]["broker_id"] == 2
        assert agent.decision["fallback"] is False


@pytest.mark.accepts("F11")
def test_a_tombstone_of_a_live_broker_is_answered_at_once(fleet: Fleet) -> None:
    # Far between enough to distinguish an answer from the next regular report, on a busy machine, too.
    fleet.agents[1].reload(interval_seconds=8)
    before = fleet.usage_of(1)[-1][1]["Sequence"]
    eventually(lambda: fleet.usage_of(1)[-1][1]["Sequence"] > before, "it has just reported")
    mark = fleet.agents[2].journal_mark()
    fleet.put("1", None)

    def answer() -> tuple[int, int] | None:
        arrivals = [(m.timestamp()[1], m.value() is None) for m in fleet.records() if m.key() == b"1"]
        removed_at = next(at for at, tombstone in reversed(arrivals) if tombstone)
        later = [at for at, tombstone in arrivals if at >= removed_at and not tombstone]
        return (removed_at, later[0]) if later else None

    removed_at_ms, reported_at_ms = eventually(answer, "the broker reports again")
    print(f"the broker reported {reported_at_ms - removed_at_ms} ms after its tombstone")
    assert reported_at_ms - removed_at_ms < 0.5 * 1000 * fleet.agents[1].settings["interval_seconds"]
    second = fleet.agents[2]
    # Not broker 1's agent: after its reload it may be reading the topic again, where nothing is news.
    second.await_entry("WARNING", say("decommissioned-without-an-author", broker=1), since=mark)
    eventually(lambda: second.states_told(mark)[-1:] != ["PAUSE"], "broker 2 ends the PAUSE")
    fleet.await_decided("OPEN")
    told = second.states_told(mark)
    assert told in ([], ["PAUSE", "OPEN"]), "held as long as it was unknown, if anybody saw it so"


@pytest.mark.accepts("F11", "A18")
def test_without_its_agent_a_broker_whose_report_was_removed_is_not_known(fleet: Fleet) -> None:
    fleet.agents[2].stop()
    fleet.put("2", None)
    fleet.await_enforced("PAUSE", [1, 3])
    assert undetermined(fleet, 1) == undetermined(fleet, 3) == [{"broker_id": 2, "cause": "tombstone"}]
    for agent in fleet.of([1, 3]):
        agent.await_metric(1, "kquota_undetermined", broker="2", cause="tombstone")


@pytest.mark.accepts("F5")
def test_a_malformed_record_is_skipped_counted_and_told(fleet: Fleet) -> None:
    before = fleet.agents[3].metric("kquota_records_total", result="malformed") or 0
    marks = fleet.marks()
    for value in (b"{", b"null", b'{"SnapshotAt": 7}'):
        fleet.put("2", value)
    agent = fleet.agents[3]
    eventually(
        lambda: agent.metric("kquota_records_total", result="malformed") == before + 3,
        "all three are counted",
    )
    sentence = "the record of key 2 can't be used: "
    told = eventually(
        lambda: len(found := agent.told(sentence, since=marks[3])) >= 3 and found, "all three are logged"
    )
    assert {level for level, _ in told} == {"WARNING"}
    assert len(told) == 3
    assert set(agent.states_told(marks[3])) <= {"OPEN"}, "the last good record counts on"


@pytest.mark.accepts("F5", "A2")
def test_a_limit_of_an_unknown_type_makes_its_sender_undetermined(fleet: Fleet) -> None:
    fleet.agents[2].stop()
    unheard = {"HardLimit": {"type": "MaxInodes", "level": 5}}
    fleet.put("2", snapshot(fleet, 2, age_seconds=0) | unheard)
    fleet.await_enforced("PAUSE", [1, 3])
    invalid = [{"broker_id": 2, "cause": "invalid-limit"}]
    assert undetermined(fleet, 1) == undetermined(fleet, 3) == invalid
    for agent in fleet.of([1, 3]):
        agent.await_metric(1, "kquota_undetermined", broker="2", cause="invalid-limit")
