"""The scope of the volume: only who writes to a topic on a volume that is over a limit is held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.formats.decision_reading import read_decision_document
from kquota.formats.sentences import decision_sentence, topic_sentence
from kquota.formats.usage_format import usage_from_document, usage_to_document
from kquota.policy.decision import Decision, Scope, State, decision_document
from kquota.policy.topic_scope import MAX_TOPICS, NoScope, TopicScope, narrowed, topics_field
from tests.unit.policy import situations
from tests.unit.policy.clusters import TOPICS, bounded, cases, decide_case, view_of
from tests.unit.policy.golden import complaints
from tests.unit.policy.oracle import Case, Message
from tests.unit.policy.situations import (
    NOW,
    Record,
    free,
    order,
    own_look,
    usage,
)
from tests.unit.wording import say

ZERO, HALF, ONE = Fraction(0), Fraction(1, 2), Fraction(1)
CALM: Record = ("1", usage(free(50)))


def decided(*records: Record, **more: Any) -> Decision:
    return situations.decided(*records, scope=Scope.VOLUME, **more)


def named(gigabytes: object, *topics: str, name: str = "/dev/sda1", **fields: object) -> dict[str, object]:
    return free(gigabytes, name, Topics=list(topics), TopicsComplete=True, **fields)


def factors(decision: Decision) -> tuple[dict[str, Fraction], Fraction] | None:
    return None if decision.scope is None else (dict(decision.scope.topics), decision.scope.others)


def of_topic(decision: Decision, topic: str) -> Fraction:
    return decision.headroom if decision.scope is None else decision.scope.of(topic)


def _without_others(message: Message, topic: str) -> Message:
    """Return the message as if its volumes that name topics, but not this one, had no say."""
    return {**message, "Volumes": [_silenced(volume, topic) for volume in message["Volumes"]]}


def _silenced(volume: Message, topic: str) -> Message:
    if volume.get("TopicsComplete") is not True or topic in volume["Topics"]:
        return volume
    # A failed volume without figures has no vote, and its broker's state is as unknown as with them.
    role = {} if volume.get("Status") == "failed" else {"Role": "metadata"}
    return {**volume, **role, "Capacity": 0, "Consumed": 0, "Latched": None}


def _seen_by(case: Case, topic: str) -> Case:
    """Return the cluster as one topic has it, where the cluster's scope decides the same for it."""
    records = [(key, _event_seen_by(case, key, event, topic)) for key, event in case.records]
    own = None if case.own is None else _without_others(case.own, topic)
    return replace(case, records=records, own=own)


def _event_seen_by(case: Case, key: str, event: Message | bytes | None, topic: str) -> Message | bytes | None:
    if not key.isdigit() or not isinstance(event, Mapping):
        return event
    fresh = NOW - usage_from_document(dict(event)).snapshot_at <= situations.STALENESS
    return _without_others(event, topic) if fresh or int(key) not in case.active else event


@given(case=cases(), topic=st.sampled_from(TOPICS))
@bounded(300)
def test_a_topic_has_what_the_cluster_would_have_without_the_volumes_of_others(
    case: Case, topic: str
) -> None:
    decision, alone = decide_case(case, Scope.VOLUME), decide_case(_seen_by(case, topic)).headroom
    view = view_of(case)
    if any(view.others_of(broker, NOW) for broker in view.brokers):
        assert of_topic(decision, topic) <= alone  # of two agents for a broker the worse counts
    else:
        assert of_topic(decision, topic) == alone


@given(case=cases(), topic=st.sampled_from(TOPICS))
@bounded(100)
def test_the_decision_about_one_topic_is_the_one_that_the_file_has_for_it(case: Case, topic: str) -> None:
    decision = decide_case(case, Scope.VOLUME)
    assert decide_case(case, topic=topic).headroom == of_topic(decision, topic)


@pytest.mark.accepts("G4")
@given(case=cases())
@bounded(200)
def test_the_scope_changes_neither_state_nor_reasons_and_holds_no_topic_for_more(case: Case) -> None:
    narrow, wide = decide_case(case, Scope.VOLUME), decide_case(case)
    assert replace(narrow, scope=None, no_scope=None) == wide
    assert wide.scope is wide.no_scope is None
    if narrow.scope is not None:
        assert narrow.headroom < narrow.scope.others
        assert all(
            wide.headroom <= headroom < narrow.scope.others for headroom in narrow.scope.topics.values()
        )
    document = decision_document(narrow, broker_id=case.self_id)
    assert complaints("decision", document, "offline") == []
    read = read_decision_document(document)
    assert factors(read) == (None if narrow.scope is None else factors(_written(narrow)))


def _written(decision: Decision) -> Decision:
    """Return the decision as far as six decimals have it."""
    document = decision_document(decision)
    topics = {t: Fraction(str(f)) for t, f in document["topics"].items()}  # type: ignore[attr-defined]
    return replace(decision, scope=TopicScope(topics, Fraction(str(document["other_topics_factor"]))))


@pytest.mark.accepts("G1")
def test_a_full_volume_pauses_the_topics_on_it_alone() -> None:
    decision = decided(CALM, ("2", usage(named(9, "orders", "bills"))))
    assert decision.state is State.PAUSE
    assert factors(decision) == ({"bills": ZERO, "orders": ZERO}, ONE)
    assert decision.no_scope is None
    assert decision_sentence(decision) == (
        f"PAUSE for 2 topics: {say('over-hard', volume='/dev/sda1', broker=2)}"
    )


def test_of_several_volumes_the_worst_counts_for_each_topic() -> None:
    decision = decided(
        ("1", usage(named(12, "a", "b"), named(15, "b", "c", name="/dev/sdb1"))), ("2", usage(named(9, "c")))
    )
    assert factors(decision) == ({"a": Fraction(1, 5), "b": Fraction(1, 5), "c": ZERO}, ONE)
    assert decision_sentence(decision).startswith("PAUSE for 1 topic, THROTTLE for 2 more: volume /dev/sda1")


@pytest.mark.accepts("G3")
def test_a_volume_that_names_no_topics_counts_for_all_of_them() -> None:
    decision = decided(("1", usage(named(9, "a", "b"))), ("2", usage(free(15))))
    assert factors(decision) == ({"a": ZERO, "b": ZERO}, HALF)
    assert decision_sentence(decision).startswith("PAUSE for 2 topics, THROTTLE to 0.5 for all others: ")
    decision = decided(("1", usage(named(12, "a"), named(15, "b", name="/dev/sdb1"))), ("2", usage(free(11))))
    assert factors(decision) is None
    assert decision.no_scope == NoScope((2, "/dev/sda1"))
    assert f"; {say('every-topic-for-a-volume', volume='/dev/sda1', broker=2)}" in decision_sentence(decision)


@pytest.mark.parametrize(
    ("gigabytes", "head"),
    [
        ((15,), "THROTTLE to 0.5 for 1 topic: "),
        ((15, 15), "THROTTLE to 0.5 for 2 topics: "),
        ((15, 12), "THROTTLE to 0.2 at worst for 2 topics: "),
    ],
)
def test_the_sentence_counts_the_topics_in_throttle(gigabytes: tuple[int, ...], head: str) -> None:
    volumes = [named(left, f"t{i}", name=f"v{i}") for i, left in enumerate(gigabytes)]
    assert decision_sentence(decided(("1", usage(*volumes)))).startswith(head)


@pytest.mark.parametrize(
    ("gigabytes", "cluster_topics", "head"),
    [
        ((9, 9), 4212, "PAUSE for 2 of 4,212 topics: "),
        ((9, 15), 4212, "PAUSE for 1 of 4,212 topics, THROTTLE for 1 more: "),
        ((15,), 2, "THROTTLE to 0.5 for 1 of 2 topics: "),
        ((9,), 1, "PAUSE for 1 of 1 topic: "),
        ((9, 15), 1, "PAUSE for 1 topic, THROTTLE for 1 more: "),  # of more than there are said to be
        ((9, 9), None, "PAUSE for 2 topics: "),
        ((9,) * 1200, 4212, "PAUSE for 1,200 of 4,212 topics: "),
        ((9,) + (15,) * 1200, None, "PAUSE for 1 topic, THROTTLE for 1,200 more: "),
    ],
)
def test_the_sentence_has_the_number_of_all_topics_where_it_is_known(
    gigabytes: tuple[int, ...], cluster_topics: int | None, head: str
) -> None:
    topics: dict[int, list[str]] = {}
    for index, left in enumerate(gigabytes):
        topics.setdefault(left, []).append(f"t{index}")
    volumes = [named(left, *names, name=f"v{left}") for left, names in topics.items()]
    decision = decided(("1", usage(*volumes)))
    assert decision_sentence(decision, cluster_topics).startswith(head)


def test_the_number_of_all_topics_is_no_news_where_all_are_held_alike() -> None:
    decision = decided(("1", usage(free(9))))
    assert decision_sentence(decision, 4212) == decision_sentence(decision)


@pytest.mark.parametrize(
    ("topic", "sentence"),
    [
        (
            "a",
            f"Topic a: PAUSE: {say('over-hard', volume='/dev/sda1', broker=1)}{say('one-more-volume')}",
        ),
        (
            "b",
            f"Topic b: THROTTLE to 0.5: {say('between', volume='v', broker=1, percent=50)}",
        ),
        ("c", say("topic-of-no-volume", topic="c")),
    ],
)
def test_a_topic_is_explained_by_the_volumes_that_hold_it(topic: str, sentence: str) -> None:
    decision = decided(("1", usage(named(9, "a"), named(15, "a", "b", name="v"))), topic=topic)
    assert topic_sentence(topic, decision) == sentence


def test_a_full_volume_without_a_topic_holds_nobody() -> None:
    decision = decided(("1", usage(named(9))))
    assert factors(decision) == ({}, ONE)
    assert decision_sentence(decision).startswith("PAUSE for no topic: volume ")


def test_without_a_volume_over_its_limit_there_is_no_scope() -> None:
    assert decided(CALM).scope is decided(CALM).no_scope is None
    assert "scope" not in decision_document(decided(CALM))


@pytest.mark.accepts("G3")
@pytest.mark.parametrize(
    ("records", "more"),
    [
        ((("2", usage(named(50, "a"), age_seconds=61)),), {"active": (1, 2)}),  # its state is not known
        ((("hold", order(Action="pause")),), {}),
    ],
)
def test_what_is_about_the_cluster_holds_every_topic(
    records: tuple[Record, ...], more: dict[str, Any]
) -> None:
    decision = decided(("1", usage(named(9, "a"))), *records, **more)
    assert decision.scope is decision.no_scope is None


def test_a_hold_open_leaves_the_topics_of_the_own_breach_held() -> None:
    hold: Record = ("hold", order(Action="open"))
    decision = decided(("1", usage(named(9, "a"))), hold, self_id=1, own=own_look(named(9, "a", "b")))
    assert factors(decision) == ({"a": ZERO, "b": ZERO}, ONE)
    assert decided(("1", usage(named(9, "a"))), hold, self_id=2).scope is None


@pytest.mark.parametrize(("fresh_seconds", "scope"), [(60, ({"a": HALF}, ONE)), (60.001, None)])
def test_an_old_list_of_an_active_broker_is_not_relied_on(
    fresh_seconds: float, scope: tuple[dict[str, Fraction], Fraction] | None
) -> None:
    old: Record = ("2", usage(named(15, "a"), age_seconds=fresh_seconds))
    maintained = decided(old, ("maintenance/2", order()), active=(2,))
    assert (maintained.headroom, factors(maintained)) == (HALF, scope)
    assert factors(decided(old, active=(2,), joining=(2,))) == scope
    assert factors(decided(old, active=None, fallback="open")) == scope
    bounded_ = ("2", usage(named(15, "a", FillCeiling=0), age_seconds=fresh_seconds))
    assert factors(decided(bounded_, active=(2,), fallback="bounded")) == scope


def test_a_broker_that_is_away_keeps_its_list() -> None:
    away: Record = ("2", usage(named(9, "a"), age_seconds=86_400))
    assert factors(decided(CALM, away, active=(1,))) == ({"a": ZERO}, ONE)
    unlisted = situations.decide(
        situations.fold(CALM, away),
        situations.Situation(None),
        situations.PolicySettings(situations.FallbackAction.OPEN, scope=Scope.VOLUME),
        NOW,
    )
    assert (unlisted.headroom, unlisted.scope) == (ZERO, None)


def test_a_fresh_look_adds_topics_that_the_record_does_not_name_yet() -> None:
    record: Record = ("1", usage(named(9, "a")))
    decision = decided(record, self_id=1, own=own_look(named(9, "a", "new")))
    assert factors(decision) == ({"a": ZERO, "new": ZERO}, ONE)
    worse = decided(("1", usage(named(15, "a"))), self_id=1, own=own_look(named(12, "new")))
    assert factors(worse) == ({"a": HALF, "new": Fraction(1, 5)}, ONE)


def test_of_two_agents_for_a_broker_the_topics_of_both_count() -> None:
    one = {**usage(named(9, "a")), "InstanceId": "A"}
    other = {**usage(named(15, "b")), "InstanceId": "B"}
    assert factors(decided(("1", one), ("1", other))) == ({"a": ZERO, "b": ZERO}, ONE)
    unnamed = {**usage(free(15)), "InstanceId": "B"}
    assert decided(("1", one), ("1", unnamed)).scope is None


@pytest.mark.accepts("G3")
@pytest.mark.parametrize(
    ("names", "complete", "topics"),
    [
        (["b", "a", "b"], True, ("a", "b")),
        ([], True, ()),
        (["a"], False, None),
        (["a"], None, None),
        (["a"], 1, None),
        ("a", True, None),
        (["a", 1], True, None),
        (["a b"], True, None),
        ([""], True, None),
        (["a\n"], True, None),
        (["a" * 249], True, ("a" * 249,)),
        (["a" * 250], True, None),
        ([f"t{i:04}" for i in range(MAX_TOPICS)], True, tuple(f"t{i:04}" for i in range(MAX_TOPICS))),
        ([f"t{i:04}" for i in range(MAX_TOPICS + 1)], True, None),
    ],
)
def test_a_list_counts_only_if_it_is_complete_and_can_be_read(
    names: object, complete: object, topics: tuple[str, ...] | None
) -> None:
    assert topics_field(names, complete) == topics
    record = usage_from_document(usage(free(9, Topics=names, TopicsComplete=complete)))
    assert record.volumes[0].topics == topics


def test_a_record_names_the_topics_that_it_has_and_no_others() -> None:
    for volume, keys in ((named(9, "a", "b"), {"Topics": ["a", "b"], "TopicsComplete": True}), (free(9), {})):
        document = usage_to_document(usage_from_document(usage(volume)))
        assert complaints("usage", document) == []
        written = document["Volumes"][0]  # type: ignore[index]
        assert {key: written[key] for key in written if key.startswith("Topics")} == keys


def test_more_topics_than_fit_into_a_decision_are_held_all_alike() -> None:
    def stakes(volumes: int, each: int, letters: int) -> TopicScope | None:
        names = [tuple(f"{v}-{t}".rjust(letters, "x") for t in range(each)) for v in range(volumes)]
        return narrowed([(ZERO, topics) for topics in names], [])

    largest = stakes(50, 1000, 1)  # 50,000 names of about 6 letters
    assert largest is None
    scope = stakes(13, 1000, 46)
    assert scope is not None
    document = decision_document(replace(decided(CALM), headroom=ZERO, scope=scope))
    assert len(str(document)) < 1024 * 1024
    assert stakes(13, 1000, 47) is None
    crowd = [(ZERO, tuple(f"t{t}" for t in range(1000)))]
    assert narrowed(crowd * 100, []) is not None
    assert narrowed([*crowd * 100, (ZERO, ("one-more",))], []) is None


def test_too_many_topics_are_a_reason_of_their_own() -> None:
    volumes = [
        named(9, *(f"topic-{v:02}-{t:04}-{'x' * 60}" for t in range(1000)), name=f"v{v}") for v in range(12)
    ]
    decision = decided(("1", usage(*volumes)))
    assert (decision.scope, decision.no_scope) == (None, NoScope(None))
    assert decision_sentence(decision).endswith(f"over a limit; {say('every-topic-for-their-number')}")


@pytest.mark.parametrize("change", [{"scope": "cluster"}, {"scope": "galaxy"}, {"scope": None}])
def test_a_scope_that_is_not_known_is_the_clusters(change: dict[str, object]) -> None:
    document = decision_document(decided(("1", usage(named(9, "a")))))
    assert read_decision_document({**document, **change}).scope is None


def test_the_factor_of_others_may_be_left_out() -> None:
    document = decision_document(decided(("1", usage(named(9, "a")))))
    del document["other_topics_factor"]
    assert factors(read_decision_document(document)) == ({"a": ZERO}, ONE)
