"""Messages about cycles: changes, once; constant states, only when debugging."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from kquota.disks.observation import Failure
from kquota.guard.applied_state import AppliedUnknown, UnknownCause
from kquota.guard.applied_verification import Verification
from kquota.guard.cycle_messages import MOST_CAUSES, CycleMessages
from kquota.journal.active_problems import ActiveProblems
from kquota.journal.journal import Entry, MessageId
from kquota.policy.decision import Mode
from kquota.policy.known_brokers import ListedBrokers
from kquota.policy.limits import Limit, LimitType
from kquota.settings.model import LimitsSection
from tests.unit.guard.cycles import (
    CLUSTER,
    NEWS,
    VERIFIED,
    Bench,
    applied_state,
    arrival,
    order,
    settings_with,
    volume,
)
from tests.unit.wording import say

WARNING, INFO, DEBUG = logging.WARNING, logging.INFO, logging.DEBUG


class Told:
    """The entries of a bench's cycles."""

    def __init__(self, bench: Bench | None = None) -> None:
        self.bench = bench or Bench()
        self.bench.ports.plug_in = (applied_state(), VERIFIED)
        self.messages, self.troubles = CycleMessages(1), ActiveProblems()

    def run(self, *arrivals: object, after: float = 0.2) -> list[Entry]:
        report = self.bench.run(*arrivals, after=after)  # type: ignore[arg-type]
        entries = self.messages.changes(report)
        entries += self.troubles.follow(self.messages.problems(report), self.bench.seconds)
        return [entry for entry in entries if entry.level > DEBUG]

    def settle(self) -> Told:
        for _ in range(4):
            self.run()
        return self


@pytest.fixture
def told() -> Told:
    return Told().settle()


def lines(entries: list[Entry]) -> list[tuple[int, str]]:
    return [(entry.level, entry.sentence) for entry in entries]


def test_the_first_decision_and_each_change_are_told_with_fields(told: Told) -> None:
    told.bench.ports.volumes = (volume(5),)
    told.run()
    entries = told.run()
    sentence = f"PAUSE: {say('over-hard', volume='/dev/sda1', broker=1)} [enforcing]"
    assert lines(entries) == [(INFO, sentence)], (
        "the cause has changed from own look to record, the state not"
    )
    told.bench.ports.volumes = (volume(50),)
    told.run()
    (entry,) = told.run()
    assert (entry.level, entry.message_id) == (INFO, MessageId.STATE_CHANGED)
    assert entry.fields == {
        "KQUOTA_STATE": "OPEN",
        "KQUOTA_FACTOR": "1.000000",
        "KQUOTA_REASON": f"OPEN: {say('calm')} [enforcing]",
    }


def test_a_state_that_holds_producers_is_a_warning(told: Told) -> None:
    told.bench.ports.volumes = (volume(5),)
    assert lines(told.run()) == [
        (
            WARNING,
            f"PAUSE: {say('over-hard', volume='/dev/sda1', broker=1)} {say('own-look')} [enforcing]",
        )
    ]


def test_an_unchanged_cycle_is_for_debugging(told: Told) -> None:
    entries = told.messages.changes(told.bench.run())
    assert [(entry.level, entry.message_id) for entry in entries] == [(DEBUG, MessageId.CYCLE)]


def test_a_factor_that_moves_is_not_told_step_by_step(told: Told) -> None:
    told.bench.ports.volumes = (volume(15),)
    assert len([*told.run(), *told.run()]) == 2
    told.bench.ports.volumes = (volume(16),)  # less held: its record, still the lower one, counts
    assert told.run() == []


def test_volumes_that_are_the_fullest_in_turn_do_not_fill_the_journal() -> None:
    """In a cluster whose volumes are filled evenly, each report makes another one the fullest."""
    told = Told()
    told.bench.news = replace(NEWS, active_brokers=frozenset({1, 2, 3}))
    told.settle()

    def minutes(number: int) -> list[Entry]:
        entries: list[Entry] = []
        for turn in range(number * 12):
            reports = [arrival(one, told.bench.usage(15 + (turn + one) % 2)) for one in (2, 3)]
            entries += told.run(*reports, after=5)
        return [entry for entry in entries if entry.message_id is MessageId.STATE_CHANGED]

    assert len(minutes(30)) <= MOST_CAUSES + 31
    assert 28 <= len(minutes(30)) <= 31, "but the present one is logged each minute"
    entries = told.run(arrival(2, told.bench.usage(5)), after=1)
    assert [entry.level for entry in entries] == [WARNING], "another state is logged at once"


def test_a_cause_that_changes_now_and_then_is_logged_each_time() -> None:
    told = Told()
    told.bench.news = replace(NEWS, active_brokers=frozenset({1, 2, 3}))
    told.settle()
    for turn in range(3 * MOST_CAUSES):
        reports = [arrival(one, told.bench.usage(15 + (turn + one) % 2)) for one in (2, 3)]
        told.run(after=30)
        assert len([one for one in told.run(*reports, after=30) if "THROTTLE" in one.sentence]) == 1


def test_each_broker_that_is_not_known_is_told_once() -> None:
    told = Told()
    told.bench.news = replace(NEWS, active_brokers=frozenset({1, 2, 3}))
    entries = [entry for _ in range(6) for entry in told.run()]
    assert lines([entry for entry in entries if entry.message_id is MessageId.UNDETERMINED]) == [
        (WARNING, say("unknown-missing", broker=broker)) for broker in (2, 3)
    ]


def test_each_broker_that_is_known_again_is_told_by_its_name() -> None:
    told = Told()
    told.bench.news = replace(NEWS, active_brokers=frozenset({1, 2, 3}))
    told.settle()
    reports = arrival(2, told.bench.usage(50)), arrival(3, told.bench.usage(50))
    entries = [entry for entry in told.run(*reports) if entry.message_id is MessageId.UNDETERMINED]
    assert lines(entries) == [(INFO, f"over: {say('unknown-missing', broker=broker)}") for broker in (2, 3)]


def test_orders_and_malformed_records_are_told(told: Told) -> None:
    entries = told.run(
        arrival("hold", None, actor="bob", reason="done"),
        arrival(7, None, actor="alice", reason="host sold"),
        arrival(2, b"{"),
    )
    kinds = {entry.message_id: entry.sentence for entry in entries}
    assert kinds[MessageId.OPERATOR_ORDER] == say("hold-released", actor="bob", reason="done")
    assert kinds[MessageId.BROKER_DECOMMISSIONED] == say(
        "decommissioned", broker=7, actor="alice", reason="host sold"
    )
    assert kinds[MessageId.RECORD_MALFORMED].startswith(say("record-malformed", key=2, problem="not JSON: "))
    assert {entry.level for entry in entries} == {WARNING}


def test_a_flood_of_malformed_records_is_told_in_part(told: Told) -> None:
    entries = told.run(*(arrival(2, b"{") for _ in range(1000)))
    assert len(entries) == 5


def test_a_volume_s_trouble_is_told_when_it_begins_changes_and_ends(told: Told) -> None:
    hung = Failure(None, "hung for 5 s")
    told.bench.ports.volumes = (volume(50, failures=(hung,)),)
    sentence = say("volume-failed", volume="/dev/sda1", problem="hung for 5 s")
    assert (WARNING, sentence) in lines(told.run())
    hung = Failure(None, "hung for 6 s")
    told.bench.ports.volumes = (volume(50, failures=(hung,)),)
    assert [e for e in told.run() if e.message_id is MessageId.VOLUME_TROUBLE] == [], "only its age differs"
    told.bench.ports.volumes = (volume(50, offline_log_dirs=("/mnt/dev/sda1/kafka",)),)
    entries = lines(told.run())
    offline = say("volume-offline", volume="/dev/sda1")
    assert (WARNING, offline) in entries
    told.bench.ports.volumes = (volume(50),)
    ended = lines(told.run())
    assert [(INFO, f"over: {sentence}"), (INFO, f"over: {offline}")] == ended[-2:]


@pytest.mark.accepts("A29")
def test_a_volume_without_a_throttle_zone_is_reported(told: Told) -> None:
    percentage = Limit.of(LimitType.MIN_FREE_PERCENTAGE, 5)
    limits = LimitsSection(hard=Limit.of(LimitType.MIN_FREE_BYTES, 10), soft=percentage)
    never_read = volume(0, "/dev/sdb1", capacity_bytes=None, consumed_bytes=None)
    told.bench.ports.volumes = (volume(50), never_read)
    told.bench.cycle.configure(settings_with(limits=limits), told.bench.ports)
    (entry,) = [e for e in told.run() if e.message_id is MessageId.CONFIGURATION_WARNING]
    assert entry.sentence == say("no-throttle-zone", volume="/dev/sda1")
    assert not [e for e in told.run() if e.message_id is MessageId.CONFIGURATION_WARNING]


@pytest.mark.accepts("F16")
def test_a_rival_is_told_when_it_comes_and_when_it_has_gone(told: Told) -> None:
    rival = arrival(1, told.bench.usage(50, InstanceId="other"))
    assert (WARNING, say("rival", instance="other", broker=1)) in lines(told.run(rival))
    assert told.run() == []
    gone = lines(told.run(after=30))
    assert (INFO, f"over: {say('rival', instance='other', broker=1)}") in gone


def test_an_age_that_grows_is_not_told_every_second(told: Told) -> None:
    def silent(seconds: int) -> tuple[AppliedUnknown, Verification]:
        reason = f"/x is {seconds} s old"
        return AppliedUnknown(UnknownCause.STALE, reason), Verification(False, False, reason)

    told.bench.ports.plug_in = silent(11)
    first = lines(told.run(after=1))
    assert (INFO, "/x is 11 s old") in first
    assert (WARNING, f"mode: {say('unverified', reason='/x is 11 s old')}") in first
    for seconds in range(12, 40):
        told.bench.ports.plug_in = silent(seconds)
        assert lines(told.run(after=1)) == []
    told.bench.ports.plug_in = (applied_state(), VERIFIED)
    last = lines(told.run(after=1))
    assert (INFO, "over: /x is 11 s old") in last
    assert (INFO, "mode: enforcing") in last


def test_a_failed_write_is_told(told: Told) -> None:
    told.bench.ports.write_error = "No space left"
    kinds = {entry.message_id: entry.sentence for entry in told.run(after=6)}
    assert kinds[MessageId.DECISION_NOT_WRITTEN] == told.bench.ports.write_error


@pytest.mark.accepts("G22")
def test_a_broken_glass_is_told_when_it_breaks_and_when_it_is_whole(told: Told) -> None:
    told.settle()
    words = say("broken-glass", broker=1)
    broken = applied_state(mode=Mode.OBSERVE, broker_mode=Mode.OBSERVE)
    told.bench.ports.plug_in = (broken, VERIFIED)
    first = lines(told.run(after=1))
    assert first == [(WARNING, words)]
    assert lines(told.run(after=1)) == []
    told.bench.ports.plug_in = (applied_state(mode=Mode.OBSERVE), VERIFIED)  # it follows a moment later
    assert [sentence for _, sentence in lines(told.run(after=1))] == [f"over: {words}"]


def test_starved_producers_are_told_once_however_many_they_are(told: Told) -> None:
    told.settle()
    for starving in (20, 19):
        told.bench.ports.plug_in = (applied_state(starving=starving), VERIFIED)
        said = [(level, sentence.partition(":")[0], starving) for level, sentence in lines(told.run(after=1))]
        assert said in ([(WARNING, "The throttle factor starves 20 producers of broker 1", 20)], [])
        assert bool(said) is (starving == 20)
    told.bench.ports.plug_in = (applied_state(), VERIFIED)
    assert [sentence.startswith("over: The throttle") for _, sentence in lines(told.run(after=1))] == [True]


@pytest.mark.accepts("G25")
def test_a_report_that_does_not_count_is_logged_once_and_when_it_is_gone() -> None:
    told = Told(Bench(listed=ListedBrokers(CLUSTER, frozenset({1}), is_complete=True))).settle()
    sentence = say("never-listed", broker=7)
    invented = arrival(7, told.bench.usage(1))
    assert lines(told.run(invented)) == [(WARNING, sentence)]
    assert told.run() == []
    assert (INFO, f"over: {sentence}") in lines(told.run(arrival(7, None)))


@pytest.mark.accepts("G11")
def test_a_hold_that_is_open_over_a_hard_limit_is_logged_while_it_lasts(told: Told) -> None:
    told.bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    told.run(arrival(2, told.bench.usage(5)))
    sentence = say("held-open", volume="/dev/other", broker=2)
    held = arrival("hold", order(1000, Action="open"))
    assert (WARNING, sentence) in lines(told.run(held))
    assert f"over: {sentence}" in [one.sentence for one in told.run(arrival("hold", None))]
