"""One cycle after the other, with the edges in memory."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from kquota.formats.records import TopicKind
from kquota.guard.applied_state import Mechanism
from kquota.guard.cycle import REWRITE_SECONDS, START_PATIENCE_SECONDS
from kquota.guard.enforcement import CONTRADICTION_SECONDS
from kquota.guard.report import CycleReport
from kquota.policy.decision import Mode, State, UndeterminedCause
from kquota.policy.timestamps import format_utc
from tests.unit.guard.cycles import (
    CLUSTER,
    CONTRADICTED,
    NEWS,
    NO_FILE,
    SETTINGS,
    UNKNOWN,
    VERIFIED,
    Bench,
    MemoryPorts,
    applied_state,
    arrival,
    moment,
    order,
    state,
    volume,
)
from tests.unit.policy.golden import complaints
from tests.unit.wording import say


def causes(report: CycleReport) -> list[tuple[int | None, str]]:
    assert report.decision is not None
    return [(entry.broker_id, entry.cause.value) for entry in report.decision.undetermined]


def test_it_waits_for_the_echo_of_its_own_report_and_then_decides() -> None:
    bench = Bench()
    first = bench.run()
    assert first.decision is None
    assert first.sentence == say("starting")
    assert bench.ports.published == []
    assert bench.ports.written == [], "an earlier instance's lease is left alone"
    bench.run()
    assert len(bench.ports.published) == 1, "once the topic was read"
    decided = bench.run()
    assert state(decided) == "OPEN"
    assert decided.sentence.startswith(f"OPEN: {say('calm')} [observing, enforce is refused")
    (document,) = bench.ports.written
    assert complaints("decision", document) == []
    assert (document["sequence"], document["broker_id"], document["cluster_id"]) == (1, 1, CLUSTER)
    assert document["valid_until_uptime_ms"] == 5_000_000 + round((bench.seconds + 30) * 1000)
    assert complaints("usage", bench.ports.published[0]) == []
    assert bench.ports.published[0]["Sequence"] == 1


def test_the_volumes_are_judged_with_whether_their_broker_is_up() -> None:
    bench = Bench()
    for active in (None, frozenset({2}), frozenset({1, 2})):
        bench.news = replace(NEWS, active_brokers=active)
        bench.run()
    assert bench.ports.active == [False, False, True]


@pytest.mark.parametrize(
    ("behind", "news", "cause"),
    [
        ({TopicKind.USAGE}, NEWS, (None, "not-read")),
        (set(), replace(NEWS, active_brokers=None), (None, "no-broker-list")),
    ],
)
def test_without_a_look_at_the_cluster_it_falls_back_after_its_patience(
    behind: Any, news: Any, cause: Any
) -> None:
    bench = Bench()
    bench.behind, bench.news = behind, news
    assert bench.run(after=START_PATIENCE_SECONDS - 1).decision is None
    report = bench.run(after=1)
    assert state(report) == "PAUSE"
    assert cause in causes(report)
    assert bench.ports.written[-1]["fallback"] is True


def test_an_own_breach_or_a_refused_topic_waits_for_nothing() -> None:
    bench = Bench()
    bench.behind = {TopicKind.USAGE}
    bench.ports.volumes = (volume(5),)
    assert state(bench.run()) == "PAUSE"
    bench = Bench()
    bench.news = replace(NEWS, topic_refused="its cleanup.policy is delete")
    report = bench.run()
    assert (None, "topic-refused") in causes(report)
    assert "(its cleanup.policy is delete)" in report.sentence
    for _ in range(3):
        bench.run()
    assert bench.ports.published == [], "nothing is written to a topic that is refused"
    assert not bench.cycle.publishes_next, "nor does it hurry from one cycle to the next because of it"
    bench.news = NEWS
    bench.run()
    assert len(bench.ports.published) == 1, "what was due all the time"


@pytest.mark.accepts("A11")
def test_it_publishes_at_once_on_a_change_and_otherwise_regularly() -> None:
    bench = Bench()
    bench.settle()
    published = len(bench.ports.published)
    for _ in range(10):
        bench.run()
    assert len(bench.ports.published) == published, "within the interval nothing is new"
    bench.run(after=5)
    assert len(bench.ports.published) == published + 1
    bench.ports.volumes = (volume(15),)
    bench.run()
    assert len(bench.ports.published) == published + 2
    assert [record["Sequence"] for record in bench.ports.published] == list(range(1, published + 3))
    assert bench.ports.news[-2:] == [False, True], "readers rest from a report whose turn has come"


def test_a_report_that_was_lost_is_followed_soon_in_a_large_cluster_too() -> None:
    bench = Bench()
    bench.news = replace(NEWS, active_brokers=frozenset(range(1, 1001)))
    for _ in range(4):
        bench.run()
    published = len(bench.ports.published)

    def published_within(seconds: int) -> int:
        for _ in range(seconds):
            bench.run(after=1.0)
        return len(bench.ports.published) - published

    assert published_within(10) == 0, "a thousand brokers report seldom"
    bench.ports.volumes = (volume(15),)
    assert published_within(1) == 1
    bench.news = replace(bench.news, reports_lost=1)
    assert published_within(4) == 1, "nor do they in a hurry when all are refused"
    assert published_within(1) == 2
    assert published_within(10) == 2, "it was lost once"


@pytest.mark.accepts("A10")
def test_its_own_fresh_look_tightens_ahead_of_its_record() -> None:
    bench = Bench()
    bench.settle()
    bench.ports.volumes = (volume(15),)
    report = bench.run()
    assert report.decision is not None
    assert [(r.cause.value, float(r.headroom)) for r in report.decision.reasons] == [("own", 0.5)]
    report = bench.run()
    assert report.decision is not None
    assert [r.cause.value for r in report.decision.reasons] == ["soft"], "its record has come back"


@pytest.mark.accepts("A30", "A16")
def test_a_latch_is_recalled_from_the_topic_before_anything_is_published() -> None:
    bench = Bench()
    bench.ports.volumes = (volume(10 + 1, volume_id="uuid"),)  # headroom 0.1: not above the margin
    own = bench.usage(11)
    own["Volumes"] = [
        {
            **own["Volumes"][0],
            "VolumeName": "/dev/sda1",
            "VolumeId": "uuid",
            "Latched": "HARD",
        }
    ]
    assert state(bench.run(arrival(1, own))) == "PAUSE"
    bench.run()
    assert bench.ports.published[0]["Volumes"][0]["Latched"] == "HARD"
    assert state(bench.run()) == "PAUSE"
    bench.ports.volumes = (volume(12, volume_id="uuid"),)
    bench.run()
    report = bench.run()
    assert "Latched" not in bench.ports.published[-1]["Volumes"][0]
    assert state(report) == "THROTTLE"


@pytest.mark.accepts("A30", "F39")
@pytest.mark.parametrize("had_a_present_one", [False, True])
def test_a_latch_is_recalled_from_a_report_of_the_time_when_the_clock_was_ahead(
    had_a_present_one: bool,
) -> None:
    bench = Bench()
    bench.ports.volumes = (volume(10 + 1, volume_id="uuid"),)
    own = bench.usage(11)
    latched = [{**own["Volumes"][0], "VolumeName": "/dev/sda1", "VolumeId": "uuid", "Latched": "HARD"}]
    ahead = {"SnapshotAt": format_utc(moment(3600).wall)}
    former = [arrival(1, bench.usage(50))] if had_a_present_one else []
    bench.run(*former, arrival(1, {**own, **ahead, "Volumes": latched}))
    bench.run()
    assert bench.ports.published[0]["Volumes"][0]["Latched"] == "HARD"
    assert state(bench.run()) == "PAUSE"
    assert [one.consumed_bytes for one in bench.ports.recalled[0]] == [89], "the newest ones"


def test_the_volumes_of_the_own_last_record_are_recalled_once_and_again_after_a_reload() -> None:
    bench = Bench()
    bench.behind = {TopicKind.USAGE}
    bench.run(arrival(1, bench.usage(50)))
    assert bench.ports.recalled == [], "a later record may say otherwise"
    bench.behind = set()
    bench.run(arrival(1, bench.usage(40)), arrival(2, bench.usage(30)))
    bench.run(arrival(1, bench.usage(20)))
    assert [[v.consumed_bytes for v in volumes] for volumes in bench.ports.recalled] == [[60]]
    ports = MemoryPorts()
    bench.replace_ports(ports, SETTINGS)
    bench.run()
    bench.run()
    assert len(ports.recalled) == 1


@pytest.mark.accepts("F11")
def test_a_tombstone_of_our_own_is_answered_in_the_next_cycle_and_never_means_open() -> None:
    bench = Bench()
    bench.settle()
    published = len(bench.ports.published)
    removed = bench.run(arrival(1, None))
    assert state(removed) == "PAUSE"
    assert causes(removed) == [(1, "tombstone")]
    assert bench.cycle.publishes_next, "it does not even wait for the next sample"
    assert state(bench.run(after=0)) == "PAUSE"
    assert len(bench.ports.published) == published + 1
    assert state(bench.run()) == "OPEN"


@pytest.mark.accepts("A18", "F15")
def test_the_lease_is_renewed_while_the_topic_is_away_and_staleness_brings_the_fallback() -> None:
    bench = Bench()
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    bench.run(arrival(2, bench.usage(50)))
    bench.settle()
    seen: dict[str, list[float]] = {"OPEN": [], "PAUSE": []}
    bench.echoes = False
    for _ in range(30):
        report = bench.run(after=2.5)
        seen[str(state(report))].append(bench.seconds)
    assert max(seen["OPEN"]) < min(seen["PAUSE"])
    assert 55 < min(seen["PAUSE"]) < 65
    ends = [document["valid_until_uptime_ms"] for document in bench.ports.written]
    gaps = [later - earlier for earlier, later in itertools.pairwise(ends)]
    assert max(gaps) <= 1000 * (REWRITE_SECONDS + 2.5), "the lease never comes near its end"
    assert causes(report) == [(1, "stale"), (2, "stale")]


def test_a_decision_is_written_at_once_when_it_changes_and_otherwise_seldom() -> None:
    bench = Bench()
    bench.settle()
    written = len(bench.ports.written)
    for _ in range(20):
        bench.run(after=0.2)
    assert len(bench.ports.written) == written
    bench.run(after=1.5)
    assert len(bench.ports.written) == written + 1
    bench.ports.volumes = (volume(15),)
    assert bench.run().written
    assert bench.ports.written[-1]["state"] == "THROTTLE"
    assert bench.ports.written[-1]["sequence"] == len(bench.ports.written)


@pytest.mark.accepts("F32")
def test_enforcing_begins_when_it_is_verified_and_outlives_what_is_not_known() -> None:
    bench = Bench()
    bench.settle()
    assert bench.ports.written[-1]["mode"] == "observe"
    bench.ports.plug_in = (applied_state(), VERIFIED)
    assert bench.run(after=1).enforcement.newly_granted
    assert bench.ports.written[-1]["mode"] == "enforce"
    assert bench.ports.grants == [CLUSTER]
    assert not bench.run(after=1).enforcement.newly_granted, "it is granted once"
    bench.ports.plug_in = (NO_FILE, UNKNOWN)
    report = bench.run(after=1)
    assert report.enforcement.mode is Mode.ENFORCE
    assert "unverified" in report.enforcement.sentence
    assert bench.ports.grants == [CLUSTER]


@pytest.mark.accepts("F32")
def test_a_lasting_contradiction_suspends_enforcing() -> None:
    bench = Bench(granted_for=CLUSTER)
    bench.settle()
    assert bench.ports.written[-1]["mode"] == "enforce", "the grant outlives a restart"
    bench.ports.plug_in = (applied_state(exempt=()), CONTRADICTED)
    assert bench.run(after=1).enforcement.mode is Mode.ENFORCE, "a new broker knows no principal yet"
    assert bench.run(after=CONTRADICTION_SECONDS - 1).enforcement.mode is Mode.ENFORCE
    bench.news = replace(NEWS, asked_own_broker=False)
    assert bench.run(after=2).enforcement.mode is Mode.ENFORCE, "it was not asked: that proves nothing"
    bench.news = NEWS
    bench.run(after=1)
    assert bench.run(after=CONTRADICTION_SECONDS).enforcement.mode is Mode.OBSERVE
    bench.ports.plug_in = (applied_state(), VERIFIED)
    assert bench.run(after=1).enforcement.mode is Mode.ENFORCE


def test_a_grant_is_for_one_cluster() -> None:
    bench = Bench(granted_for="another")
    bench.settle()
    assert bench.ports.written[-1]["mode"] == "observe"


def lease_left_ms(bench: Bench) -> float:
    now_ms = 5_000_000 + 1000 * bench.seconds
    return bench.ports.written[-1]["valid_until_uptime_ms"] - now_ms


def test_in_maintenance_the_lease_lasts_until_its_end_and_a_day_at_most() -> None:
    bench = Bench()
    bench.settle()
    bench.run(arrival("maintenance/1", order(600)))
    assert lease_left_ms(bench) == pytest.approx(1000 * (600 - bench.seconds), abs=1)
    bench.run(arrival("maintenance/1", order(1_000_000)))
    assert lease_left_ms(bench) == 86_400_000
    bench.run(arrival("maintenance/1", None))
    assert lease_left_ms(bench) == 30_000, "taken back, it ends with the next decision"


@pytest.mark.parametrize("action", ["open", "pause"])
def test_in_maintenance_the_lease_of_a_hold_does_not_outlive_the_hold(action: str) -> None:
    bench = Bench()
    bench.settle()
    bench.run(arrival("maintenance/1", order(8 * 3600)), arrival("hold", order(600, Action=action)))
    assert lease_left_ms(bench) == pytest.approx(1000 * (600 - bench.seconds), abs=1)
    bench.run(arrival("hold", order(10 + bench.seconds, Action=action)))
    assert lease_left_ms(bench) == 30_000, "no shorter than any lease"
    bench.run(after=12)
    assert lease_left_ms(bench) == pytest.approx(1000 * (8 * 3600 - bench.seconds), abs=1), "the hold is over"


def test_what_was_ordered_before_the_start_is_no_news() -> None:
    bench = Bench()
    hold = order(600, Action="pause")
    assert bench.run(arrival("hold", hold), arrival(7, None), arrival(1, b"{")).fold.orders == []
    bench.run()
    report = bench.run(arrival("hold", None, actor="bob", reason="done"), arrival(2, b"{"))
    assert [news.sentence for news in report.fold.orders] == [
        say("hold-released", actor="bob", reason="done")
    ]
    assert len(report.fold.malformed) == 1
    assert report.fold.malformed[0].startswith(say("record-malformed", key=2, problem="not JSON: "))
    assert report.fold.results["malformed"] == report.fold.results["operator"] == 1


def test_another_cluster_s_records_are_not_believed() -> None:
    bench = Bench()
    bench.settle()
    report = bench.run(arrival(2, bench.usage(5, ClusterId="another")))
    assert report.fold.results["malformed"] == 1
    assert report.fold.malformed == [say("record-of-another-cluster", key=2, cluster="another")]
    assert state(report) == "OPEN"


def test_a_record_that_is_not_taken_is_no_rival_s() -> None:
    bench = Bench()
    bench.settle()
    foreign = bench.usage(5, ClusterId="another", InstanceId="theirs")
    future = bench.usage(5, InstanceId="other", age_seconds=-60)
    report = bench.run(arrival(1, foreign), arrival(1, future))
    assert report.fold.rival_instance is None
    assert state(report) == "OPEN"
    assert report.fold.malformed == [say("record-of-another-cluster", key=1, cluster="another")]


def test_it_goes_on_without_volumes_to_look_at() -> None:
    bench = Bench()
    bench.ports.volumes = ()
    report = bench.run(after=START_PATIENCE_SECONDS)
    assert report.own is None
    assert report.observation.volumes == ()
    bench.run()
    assert bench.ports.published == []
    assert (1, UndeterminedCause.MISSING.value) in causes(bench.run())


def test_what_the_plug_in_applies_is_told_with_the_record() -> None:
    bench = Bench()
    bench.settle()
    bench.ports.plug_in = (applied_state(State.PAUSE), VERIFIED)
    bench.run(after=1)
    bench.run()
    assert bench.ports.published[-1]["Applied"] == {
        "State": "PAUSE",
        "Factor": 0.0,
        "Sequence": 1,
        "Mechanism": "governor",
        "Mode": "enforce",
        "Scope": "cluster",
    }
    observed = applied_state(State.PAUSE, mode=Mode.OBSERVE, mechanism=Mechanism.NONE)
    bench.ports.plug_in = (observed, VERIFIED)
    for _ in range(3):
        bench.run(after=5)
    assert bench.ports.published[-1]["Applied"]["Mode"] == "observe", "though the broker would enforce"


def test_what_it_publishes_says_how_fast_each_volume_fills() -> None:
    bench = Bench()
    for second in range(60):
        filling = replace(volume(50), capacity_bytes=10**6, consumed_bytes=1000 + 50 * second)
        bench.ports.volumes = (replace(filling, sampled_at_monotonic=float(second)),)
        bench.run(after=1.0)
    (published,) = bench.ports.published[-1]["Volumes"]
    assert published["FillBytesPerSecond"] == 50
    assert "FillBytesPerSecond" not in bench.ports.published[0]["Volumes"][0], "nothing was seen yet"
