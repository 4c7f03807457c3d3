"""One broker's report decides for all, at once, without a restart, and alike everywhere."""

from __future__ import annotations

import itertools
import math

import pytest

from tests.integration.spine.fleet import Fleet
from tests.integration.waiting import eventually

LARGEST_REQUEST_BYTES = 1_000_000
"""The most that librdkafka puts into one request for one partition (batch.size); each broker leads one."""
LATE_INTERVALS = 5
"""A report that is later than that was held up, by more than a busy machine."""


def alike(fleet: Fleet, *names: str) -> list[list[object]]:
    """The content of each decision file at one moment."""
    decisions = [agent.decision for agent in fleet.agents.values()]
    return [[(decision or {}).get(name) for name in names] for decision in decisions]


@pytest.mark.accepts("A9", "A10", "A6", "A1", "C12")
def test_one_full_volume_of_one_broker_pauses_producers_on_every_broker(fleet: Fleet) -> None:
    pids = [node.pid for node in fleet.cluster.brokers]
    device = fleet.disk(2, 2).device
    fleet.fill(2, headroom=-0.2, number=2)
    fleet.await_enforced("PAUSE")
    said = eventually(
        lambda: (
            (found := alike(fleet, "state", "factor", "reasons", "undetermined", "mode"))
            and found[0] == found[1] == found[2]
            and found
        ),
        "every decision file has the same decision",
    )
    print(said[0])
    state, factor, reasons, undetermined, mode = said[0]
    assert (state, factor, undetermined, mode) == ("PAUSE", 0, [], "enforce")
    assert reasons == [{"broker_id": 2, "volume": device, "cause": "hard", "headroom": 0}]
    assert fleet.disk(1).consumed_bytes() < fleet.disk(1).capacity_bytes() / 4, "broker 1 has room"
    assert fleet.disk(2, 1).consumed_bytes() < fleet.disk(2, 1).capacity_bytes() / 4
    for agent in fleet.agents.values():
        assert agent.applied is not None
        assert agent.applied["mechanism"] == "governor"
    fleet.clear()
    fleet.await_enforced("OPEN")
    assert [node.pid for node in fleet.cluster.brokers] == pids, "no broker was restarted"


@pytest.mark.accepts("A7", "A10")
def test_half_way_from_soft_to_hard_every_broker_decides_the_same_factor(fleet: Fleet) -> None:
    fleet.fill(3, headroom=0.5)
    fleet.await_enforced("THROTTLE")

    def same_records() -> list[list[object]] | None:
        found = alike(fleet, "factor", "reasons")
        return found if found[0] == found[1] and abs(float(str(found[0][0])) - 0.5) < 0.01 else None

    first, _, third = eventually(same_records, "brokers 1 and 2 write the same factor")
    print("factors of brokers 1 and 3:", first[0], third[0])
    # A few blocks written since its last report may have tightened what the owner itself decides.
    assert float(str(first[0])) - 0.01 < float(str(third[0])) <= float(str(first[0]))
    fleet.fill(1, headroom=0.25)
    eventually(
        lambda: all(factor == pytest.approx(0.25, abs=0.01) for (factor,) in alike(fleet, "factor")),
        "the smaller factor of two volumes holds everywhere",
    )


@pytest.mark.accepts("A11", "A12")
def test_volumes_are_reported_at_start_and_regularly(fleet: Fleet) -> None:
    agent = fleet.agents[1]
    interval_ms = 1000 * float(agent.settings["interval_seconds"])
    agent.stop()
    before = {record["InstanceId"] for _, record in fleet.usage_of(1)}
    agent.start()

    def reports() -> list[tuple[int, dict[str, object]]] | None:
        new = [entry for entry in fleet.usage_of(1) if entry[1]["InstanceId"] not in before]
        return new if len(new) >= 4 else None

    new = eventually(reports, "the new instance has reported four times")
    assert [record["Sequence"] for _, record in new[:4]] == [1, 2, 3, 4]
    gaps_ms = [later[0] - earlier[0] for earlier, later in itertools.pairwise(new)]
    print("gaps between reports in ms:", gaps_ms)
    assert max(gaps_ms) < LATE_INTERVALS * interval_ms
    volume = new[-1][1]["Volumes"][0]  # type: ignore[index]
    assert volume["VolumeName"] == fleet.disk(1).device
    assert volume["Capacity"] == fleet.disk(1).capacity_bytes()
    assert volume["Consumed"] == pytest.approx(fleet.disk(1).consumed_bytes(), abs=10**6)


@pytest.mark.accepts("A17", "F28", "B8", "C12")
def test_in_pause_producers_are_held_and_reports_are_not(fleet: Fleet, topic_name: str) -> None:
    fleet.create_topic(topic_name)
    offered = 8e6
    with fleet.produce(topic_name, offered) as load:
        eventually(lambda: load.latest and load.latest.bytes > 2 * offered, "the producer is at its rate")
        fleet.fill(3, headroom=-0.2)
        fleet.await_enforced("PAUSE")
        reports_before = {broker_id: len(fleet.usage_of(broker_id)) for broker_id in fleet.agents}
        paused_at = load.latest.at  # type: ignore[union-attr]
        landed = fleet.landed_bytes(topic_name)
        # As long a pause as it takes for some regular reports of each broker.
        for broker_id, before in reports_before.items():
            eventually(
                lambda id_=broker_id, before=before: len(fleet.usage_of(id_)) >= before + 4,
                f"broker {broker_id} reports on in PAUSE",
            )
        leaked = fleet.landed_bytes(topic_name) - landed
        seconds = load.latest.at - paused_at  # type: ignore[union-attr]
        print(f"{leaked} bytes landed in {seconds:.1f} s of PAUSE, {offered * seconds:.0f} were offered")
        # Each of the producer's connections lands one request for each delay, and delays grow with the pause.
        # A share of the offered data would allow more the longer the pause lasts.
        law = len(fleet.agents) * LARGEST_REQUEST_BYTES * (3 + 2 * math.log(seconds / 2))
        assert leaked <= law, f"{leaked} bytes landed, the law allows {law:.0f}"
        for broker_id, agent in fleet.agents.items():
            reports = fleet.usage_of(broker_id)
            gaps_ms = [later[0] - earlier[0] for earlier, later in itertools.pairwise(reports)][-4:]
            assert max(gaps_ms) < LATE_INTERVALS * 1000 * float(agent.settings["interval_seconds"]), gaps_ms
            sequences = [record["Sequence"] for _, record in reports[-4:]]
            assert sequences == list(range(sequences[0], sequences[0] + 4))
            assert reports[-1][1]["Applied"]["State"] == "PAUSE"
        fleet.clear()
        fleet.await_enforced("OPEN")
        held = load.latest.bytes  # type: ignore[union-attr]
        eventually(lambda: load.latest and load.latest.bytes > held + 2 * offered, "producers flow again")
    assert load.latest is not None
    assert load.latest.failed_records == 0, "a pause is a delay, never an error"
    assert fleet.landed_bytes(topic_name) >= load.latest.bytes, "what was acknowledged is in the log"
