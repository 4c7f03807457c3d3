"""The agent's cordon and its memory: what it remembers before it acts, and its sentences where it can't."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

import pytest

from kquota.guard.report import CycleReport
from kquota.journal.active_problems import ActiveProblem
from kquota.journal.journal import Entry
from kquota.kafka.admin import Pending
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.policy.cordon import SETTING, Cordon
from kquota.policy.volume import Volume
from kquota.retention.cordoning import LogDirCordon
from tests.integration.waiting import eventually
from tests.unit.guard.cycles import Bench
from tests.unit.policy.test_cordon import volume

FULL, ROOMY = volume(800), volume(100)
DENIED = KafkaFailure(Kind.ACL_DENIED, "give the permission", code="CLUSTER_AUTHORIZATION_FAILED")
OLD = KafkaFailure(Kind.TOPIC_REFUSED, "refused", code="INVALID_CONFIG", detail="not at this level")


class Brokers:
    """A broker's settings; ``refusal`` is its answer to a change, ``on_disk`` the agent's memory."""

    def __init__(self) -> None:
        self.settings: dict[str, str] | KafkaFailure = {SETTING: ""}
        self.refusal: KafkaFailure | None = None
        self.on_disk: frozenset[str] = frozenset()
        self.on_disk_at_changes: list[frozenset[str]] = []

    def broker_settings(self, _broker_id: int) -> Pending[Mapping[str, str]]:
        found = self.settings
        return Pending(lambda: found)

    def set_broker_setting(self, _broker_id: int, name: str, value: str | None) -> Pending[None]:
        self.on_disk_at_changes.append(self.on_disk)
        if self.refusal is None:
            self.settings = {name: value or ""}
        refusal = self.refusal
        return Pending(lambda: refusal)

    def remember(self, log_dirs: frozenset[str]) -> None:
        self.on_disk = log_dirs


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


Start = Callable[..., LogDirCordon]


@pytest.fixture
def start(brokers: Brokers) -> Iterator[Start]:
    started: list[LogDirCordon] = []

    def start(since: Cordon = Cordon.SOFT, *, settles: bool = True) -> LogDirCordon:
        cordon = LogDirCordon(
            brokers,  # type: ignore[arg-type]
            1,
            since,
            brokers.on_disk,
            release_margin=Fraction(1, 10),
            settle=lambda _seconds: settles,
            remember=brokers.remember,
        )
        started.append(cordon)
        return cordon

    yield start
    for cordon in started:
        cordon.close()


def seen(one: Volume) -> CycleReport:
    """The report of a cycle that saw this volume."""
    report = Bench().run()
    assert report.own is not None
    return replace(report, own=replace(report.own, volumes=(one,)))


def problems(cordon: LogDirCordon, one: Volume, told: list[str] | None = None) -> list[str]:
    """Run a cycle with this volume; return what is wrong, and add to ``told`` what has happened."""
    found = list(cordon.follow(seen(one)))
    if told is not None:
        told += [each.sentence for each in found if isinstance(each, Entry)]
    return [each.sentence for each in found if isinstance(each, ActiveProblem)]


def cycles(
    cordon: LogDirCordon, one: Volume, until: Callable[[], object], told: list[str] | None = None
) -> list[str]:
    """Run cycles with this volume until something holds; return the sentences of the last one's troubles."""
    troubles: list[str] = []

    def cycle() -> object:
        troubles[:] = problems(cordon, one, told)
        return until()

    eventually(cycle)
    return troubles


@pytest.mark.accepts("G17")
def test_a_log_dir_is_remembered_before_it_is_cordoned_and_forgotten_afterwards(
    brokers: Brokers, start: Start
) -> None:
    cordon = start()
    entries: list[str] = []
    cycles(cordon, FULL, lambda: brokers.settings == {SETTING: "/a"}, entries)
    assert brokers.on_disk_at_changes == [frozenset({"/a"})]
    cycles(cordon, ROOMY, lambda: brokers.settings == {SETTING: ""} and not brokers.on_disk, entries)
    cycles(cordon, ROOMY, lambda: len(entries) == 2, entries)
    assert entries == [
        "Kafka places no new partition in /a: its volume is over its soft limit",
        "Kafka may place new partitions in /a again",
    ]


@pytest.mark.accepts("G17")
def test_an_agent_that_died_in_between_still_knows_what_is_its_own(brokers: Brokers, start: Start) -> None:
    brokers.on_disk = frozenset({"/a"})
    cycles(start(), FULL, lambda: brokers.settings == {SETTING: "/a"})
    cycles(start(), ROOMY, lambda: brokers.settings == {SETTING: ""} and not brokers.on_disk)


def test_nothing_is_cordoned_that_could_not_be_remembered(brokers: Brokers, start: Start) -> None:
    cordon = start(settles=False)
    found: list[str] = []

    def has_trouble() -> bool:
        found[:] = problems(cordon, FULL)
        return bool(found)

    eventually(has_trouble)
    assert found == ["the cordon of /a can't be changed: the state file can't be written, see there"]
    assert brokers.settings == {SETTING: ""}


@pytest.mark.accepts("G17")
@pytest.mark.parametrize(
    ("settings", "refusal", "why"),
    [
        ({"log.dirs": "/a"}, None, "broker 1 has no setting cordoned.log.dirs, which Kafka has since 4.3"),
        ({SETTING: ""}, DENIED, "give the permission"),
        ({SETTING: ""}, OLD, "not at this level (it needs metadata version 4.3-IV0"),
        (KafkaFailure(Kind.UNREACHABLE, "no broker answers"), None, "no broker answers"),
    ],
)
def test_a_cluster_that_refuses_is_a_trouble_with_a_sentence(
    brokers: Brokers,
    start: Start,
    settings: dict[str, str] | KafkaFailure,
    refusal: KafkaFailure | None,
    why: str,
) -> None:
    brokers.settings, brokers.refusal = settings, refusal
    cordon, found = start(), list[str]()

    def has_trouble() -> bool:
        found[:] = problems(cordon, FULL)
        return bool(found)

    eventually(has_trouble)
    assert found[0].startswith(f"the cordon of /a can't be changed: {why}")
    brokers.settings, brokers.refusal = {SETTING: ""}, None
    cycles(
        cordon,
        FULL,
        lambda: brokers.settings == {SETTING: "/a"} and not problems(cordon, FULL),
    )


def test_an_agent_with_nothing_to_cordon_asks_nothing(brokers: Brokers, start: Start) -> None:
    cordon = start(Cordon.OFF)
    assert list(cordon.follow(seen(FULL))) == []
    assert not cordon._thread.is_alive()
