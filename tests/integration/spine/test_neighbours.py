"""Agents of the version before and the version after among ours."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from kquota.guard.decision_file import DecisionFile
from kquota.policy.timestamps import format_utc
from tests.integration.spine.agents import uptime_ms
from tests.integration.spine.fleet import Fleet
from tests.integration.waiting import eventually

_NOVELTY: dict[str, Any] = {"SchemaVersion": 2, "Novelty": {"of": ["the", {"next": "version"}]}}
_PLAIN = ("SnapshotAt", "HardLimit", "SoftLimit")  # all that the proposal knows, besides volumes
_PLAIN_OF_VOLUME = ("VolumeName", "Capacity", "Consumed")


@pytest.fixture
def last_record(fleet: Fleet) -> dict[str, Any]:
    """The last record of broker 2, whose agent has made room for a neighbour."""
    fleet.agents[2].stop()
    return fleet.usage_of(2)[-1][1]


def of_the_next_version(record: dict[str, Any], free_ratio: float) -> dict[str, Any]:
    volumes = [_NOVELTY | at(volume, free_ratio) for volume in record["Volumes"]]
    limits = {name: record[name] | {"novelty": 1} for name in ("HardLimit", "SoftLimit")}
    applied = {"State": "SLOW", "Novelty": [1], "Factor": "0.5"}
    return record | _NOVELTY | limits | {"SnapshotAt": now(), "Volumes": volumes, "Applied": applied}


def of_the_version_before(record: dict[str, Any], free_ratio: float) -> dict[str, Any]:
    volumes = [at(volume, free_ratio) for volume in record["Volumes"]]
    plain = [{key: volume[key] for key in _PLAIN_OF_VOLUME} for volume in volumes]
    return {key: record[key] for key in _PLAIN} | {"SnapshotAt": now(), "Volumes": plain}


def at(volume: dict[str, Any], free_ratio: float) -> dict[str, Any]:
    return volume | {"Consumed": round(volume["Capacity"] * (1 - free_ratio))}


def now() -> str:
    return format_utc(datetime.now(UTC))


@pytest.mark.accepts("F26")
def test_records_of_both_neighbours_count_by_what_is_known_of_them(
    fleet: Fleet, last_record: dict[str, Any]
) -> None:
    others = [1, 3]
    marks = fleet.marks()
    malformed = fleet.agents[1].metric("kquota_records_total", result="malformed") or 0
    for write in (of_the_next_version, of_the_version_before):
        for free_ratio, state in ((0.35, "THROTTLE"), (0.1, "PAUSE"), (0.9, "OPEN")):
            fleet.put("2", write(last_record, free_ratio))
            fleet.await_enforced(state, others)
            for agent in fleet.of(others):
                assert agent.decision["undetermined"] == []
    for agent in fleet.of(others):
        assert agent.process.running()
        assert agent.told("can't be used", since=marks[agent.broker_id]) == []
    assert (fleet.agents[1].metric("kquota_records_total", result="malformed") or 0) == malformed
    status = json.loads(fleet.agents[1].cli("status", "--json").stdout)
    assert [broker["broker_id"] for broker in status["brokers"]] == [1, 2, 3]


@pytest.mark.accepts("F26")
def test_the_plug_in_obeys_the_decision_of_a_newer_agent(fleet: Fleet, last_record: dict[str, Any]) -> None:
    agent = fleet.agents[2]
    assert agent.decision is not None
    newer = agent.decision | {
        "schema_version": 1,
        "sequence": agent.decision["sequence"] + 1000,
        "state": "PAUSE",
        "factor": 0,
        "valid_until_uptime_ms": uptime_ms() + 60_000,
        "novelty": {"of": ["the next version"]},
    }
    assert DecisionFile(agent.decision_path).write(newer) is None
    applied = eventually(
        lambda: (found := agent.applied)["sequence"] == newer["sequence"] and found, "the plug-in has read it"
    )
    assert (applied["state"], applied["lost"]) == ("PAUSE", None)
