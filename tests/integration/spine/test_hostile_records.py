"""Records that must not be believed, in a real topic, read by real agents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kquota.formats.warnings import unvouched_sentence
from tests.integration.spine.fleet import GONE_BROKERS, Fleet
from tests.integration.spine.test_unknown_states import snapshot
from tests.integration.waiting import eventually

# A broker that was listed once: its last verdict counts, and no agent publishes over it.
STRANGER = str(GONE_BROKERS[0])
# One that never was.
INVENTED = "999999"
HOUR_SECONDS = 3600.0


@pytest.fixture
def stranger(fleet: Fleet) -> Iterator[Fleet]:
    yield fleet
    fleet.put(STRANGER, None)


def report(fleet: Fleet, *, age_seconds: float, full: bool, **changes: Any) -> dict[str, Any]:
    """A report of broker 1, with its first volume full or empty."""
    record = snapshot(fleet, 1, age_seconds)
    volume = dict(record["Volumes"][0])
    volume.pop("Latched", None)
    volume["Consumed"] = volume["Capacity"] if full else 0
    return record | {"Volumes": [volume]} | changes


def counted(fleet: Fleet, result: str) -> float:
    return fleet.agents[2].metric("kquota_records_total", result=result) or 0


@pytest.mark.accepts("F7", "A31")
def test_a_report_from_the_future_neither_holds_nor_releases(stranger: Fleet) -> None:
    fleet, marks = stranger, stranger.marks()
    before = counted(fleet, "future")
    fleet.put(STRANGER, report(fleet, age_seconds=-HOUR_SECONDS, full=True))
    eventually(lambda: counted(fleet, "future") == before + 1, "it is counted")
    for broker_id, agent in fleet.agents.items():
        assert set(agent.states_told(marks[broker_id])) <= {"OPEN"}, "a breach from the future holds none"

    fleet.put(STRANGER, report(fleet, age_seconds=0, full=True))
    fleet.await_enforced("PAUSE")
    marks = fleet.marks()
    fleet.put(STRANGER, report(fleet, age_seconds=-HOUR_SECONDS, full=False))
    eventually(lambda: counted(fleet, "future") == before + 2, "it is counted")
    fleet.put(STRANGER, b"not a report")  # later records have been read, too, by the time this is counted
    eventually(lambda: fleet.agents[2].told(f"key {STRANGER}", since=marks[2]), "the next one is logged")
    for broker_id, agent in fleet.agents.items():
        assert set(agent.states_told(marks[broker_id])) <= {"PAUSE"}, (
            "a relief from the future releases no producer"
        )
        assert agent.applied_state == "PAUSE"


@pytest.mark.accepts("G25")
def test_a_full_broker_that_was_never_listed_holds_no_producer_and_is_shown(fleet: Fleet) -> None:
    marks = fleet.marks()
    fleet.put(INVENTED, report(fleet, age_seconds=0, full=True) | {"Listed": [int(INVENTED)]})
    sentence = unvouched_sentence(int(INVENTED))
    for broker_id, agent in fleet.agents.items():
        agent.await_entry("WARNING", sentence, since=marks[broker_id])
        assert set(agent.states_told(marks[broker_id])) <= {"OPEN"}
        assert agent.state == agent.applied_state == "OPEN"
        eventually(lambda agent=agent: agent.metric("kquota_unvouched_brokers") == 1, "a metric counts it")
    status = json.loads(fleet.agents[1].cli("status", "--json").stdout)
    assert [one["broker_id"] for one in status["brokers"] if not one["counts"]] == [int(INVENTED)]
    assert status["warnings"] == [sentence]


@pytest.mark.accepts("A10")
def test_whatever_is_written_in_its_name_a_broker_obeys_its_own_disks(fleet: Fleet) -> None:
    fleet.fill(3, headroom=-0.2)
    fleet.await_enforced("PAUSE")
    owner, marks = fleet.agents[3], fleet.marks()
    record = fleet.usage_of(3)[-1][1]
    fine = [volume | {"Consumed": 0} for volume in record["Volumes"]]
    for volume in fine:
        volume.pop("Latched", None)
    for _ in range(5):
        fleet.put("3", snapshot(fleet, 3, age_seconds=0) | {"Volumes": fine})
    fleet.put("3", b"not a report")
    for broker_id, agent in fleet.agents.items():
        eventually(
            lambda agent=agent, mark=marks[broker_id]: agent.told("key 3", since=mark), "it has read them all"
        )
    assert set(owner.states_told(marks[3])) <= {"PAUSE"}
    assert owner.applied_state == "PAUSE"
    fleet.await_enforced("PAUSE")  # the others, too, with its next report


@pytest.mark.accepts("F6", "A31")
def test_reports_that_cannot_be_are_skipped_and_lift_nothing(stranger: Fleet) -> None:
    fleet = stranger
    fleet.put(STRANGER, report(fleet, age_seconds=0, full=True))
    fleet.await_enforced("PAUSE")
    marks, before = fleet.marks(), counted(fleet, "malformed")
    good = report(fleet, age_seconds=0, full=False)
    volume = good["Volumes"][0]
    hostile: list[bytes] = [
        json.dumps(good | {"Volumes": [volume | {"Consumed": -1}]}).encode(),
        json.dumps(good | {"Volumes": [volume | {"Consumed": volume["Capacity"] + 1}]}).encode(),
        json.dumps(good | {"Volumes": [volume, volume]}).encode(),
        json.dumps(good | {"Volumes": []}).encode(),
        json.dumps(good | {"Volumes": [volume | {"Consumed": float("nan")}]}).encode(),
        b"[" * 200_000,
        json.dumps(good | {"Volumes": [volume | {"VolumeName": f"v{i}"} for i in range(5000)]}).encode()[
            :900_000
        ],
        b'{"SnapshotAt": ' + b"9" * 500_000 + b"}",
        b"\xff\xfe\x00" * 1000,
    ]
    for value in hostile:
        fleet.put(STRANGER, value)
    eventually(lambda: counted(fleet, "malformed") == before + len(hostile), "all are counted")
    for broker_id, agent in fleet.agents.items():
        assert agent.process.running()
        assert set(agent.states_told(marks[broker_id])) <= {"PAUSE"}
        assert agent.state == agent.applied_state == "PAUSE"
