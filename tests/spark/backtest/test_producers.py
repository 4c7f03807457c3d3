"""Whom a decision holds, by what the history has of producers and topics."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pytest

from kquota.policy.decision import Decision, Scope
from kquota.policy.topic_scope import NoScope, TopicScope
from kquota_pipeline.backtest.producers import Producers, Tally, named, topics_of

HALF = Fraction(1, 2)
PAUSED, SLOWED, FREE, UNKNOWN = (("user", name) for name in ("paused", "slowed", "free", "unknown"))
KNOWN = {PAUSED: ["a", "c"], SLOWED: ["b"], FREE: ["c"]}
BY_TOPIC = TopicScope({"a": Fraction(0), "b": HALF})


def decision(
    headroom: Fraction, scope: TopicScope | None = None, no_scope: NoScope | None = None
) -> Decision:
    now = datetime(2026, 11, 1, tzinfo=UTC)
    return Decision(headroom, (), (), False, None, now, 0, scope=scope, no_scope=no_scope)


def held(by: Decision, scope: Scope, *, unknown: bool = False, unlisted: int = 0) -> Tally:
    producers = Producers()
    producers.observe(KNOWN | ({UNKNOWN: None} if unknown else {}), unlisted, were_held=False)
    return producers.held_by(by, scope)


@pytest.mark.parametrize(
    ("by", "scope", "expected"),
    [
        (decision(Fraction(1)), Scope.VOLUME, Tally()),
        (decision(HALF), Scope.CLUSTER, Tally(slowed=3)),
        (decision(Fraction(0)), Scope.CLUSTER, Tally(paused=3)),
        (decision(Fraction(0), BY_TOPIC), Scope.VOLUME, Tally(paused=1, slowed=1)),
        (decision(Fraction(0), TopicScope({})), Scope.VOLUME, Tally()),
    ],
)
def test_a_producer_is_held_by_the_worst_of_its_topics(by: Decision, scope: Scope, expected: Tally) -> None:
    assert held(by, scope) == expected


def test_what_the_history_does_not_say_counts_as_with_the_scope_of_the_cluster() -> None:
    by_topic = decision(Fraction(0), BY_TOPIC)
    assert held(by_topic, Scope.VOLUME, unknown=True) == Tally(paused=2, slowed=1, by_cluster=True)
    unnamed = decision(Fraction(0), no_scope=NoScope((1, "/dev/sda")))
    assert held(unnamed, Scope.VOLUME) == Tally(paused=3, by_cluster=True)
    partly = decision(Fraction(0), TopicScope({"a": Fraction(0)}, others=HALF))
    assert held(partly, Scope.VOLUME) == Tally(paused=1, slowed=2, by_cluster=True)
    fallback = decision(Fraction(0))
    assert held(fallback, Scope.VOLUME, unknown=True) == Tally(paused=4), "all are held: that is no lack"


def test_a_producer_without_topics_is_held_as_any_other_topic() -> None:
    producers = Producers()
    producers.observe({FREE: []}, 0, were_held=False)
    assert producers.held_by(decision(Fraction(0), BY_TOPIC), Scope.VOLUME) == Tally()


def test_clients_that_records_do_not_list_count_by_themselves_while_producers_are_held() -> None:
    assert held(decision(HALF), Scope.CLUSTER, unlisted=7) == Tally(slowed=3, unlisted=7)
    assert held(decision(Fraction(1)), Scope.CLUSTER, unlisted=7) == Tally()


def test_who_wrote_before_the_brokers_held_producers_still_counts_meanwhile() -> None:
    producers, pause = Producers(), decision(Fraction(0))
    producers.observe({FREE: ["c"], SLOWED: ["b"]}, 0, were_held=False)
    producers.observe({SLOWED: None}, 0, were_held=True)
    assert producers.held_by(pause, Scope.CLUSTER).paused == 2
    assert producers.held_by(decision(HALF, TopicScope({"c": HALF})), Scope.VOLUME) == Tally(
        slowed=2, by_cluster=True
    )
    producers.observe({SLOWED: ["b"]}, 0, were_held=False)
    assert producers.held_by(pause, Scope.CLUSTER).paused == 1


def test_producers_are_read_from_lists_and_from_the_arrays_of_pandas() -> None:
    entries = [
        {"user": "u", "client_id": name, "topics": topics} for name, topics in (("a", ["t"]), ("b", None))
    ]
    of_pandas = [entries[0] | {"topics": np.array(["t"], dtype=object)}, entries[1]]
    for given in (entries, np.array(of_pandas, dtype=object)):
        producers = Producers()
        producers.observe(named(given), 0, were_held=False)
        by_topic = decision(Fraction(0), TopicScope({"t": HALF}))
        assert producers.held_by(by_topic, Scope.VOLUME) == Tally(paused=1, slowed=1, by_cluster=True)


def test_topics_of_a_volume_are_read_as_an_agent_reads_them() -> None:
    assert topics_of(("b", "a", "b")) == ("a", "b")
    assert topics_of(()) == ()
    assert topics_of(("no topic/",)) is None
    assert topics_of(tuple(f"t{i}" for i in range(2001))) is None
