"""Every trouble is logged when it begins and when it ends, by its own name."""

from __future__ import annotations

import logging
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kquota.journal.active_problems import MAX_OF_SUBJECT, STILL_SECONDS, ActiveProblem, ActiveProblems
from kquota.journal.journal import MessageId
from kquota.kafka.errors import KafkaFailure, Kind
from tests.unit.policy.clusters import bounded

SUBJECTS, KINDS, BROKERS = ("reader", "brokers"), (Kind.UNREACHABLE, Kind.TIMEOUT), ("kafka2:9", "kafka3:9")


def trouble(subject: str, kind: Kind, broker: str, seconds: int = 0) -> ActiveProblem:
    """A trouble, and how long it has lasted: figures in a sentence make it no other one."""
    return ActiveProblem.of(
        subject, KafkaFailure(kind, f"{subject}: {broker} {kind} for {seconds} s", broker=broker)
    )


def sentences(table: ActiveProblems, *standing: ActiveProblem, at: float = 0.0) -> list[str]:
    return [entry.sentence for entry in table.follow(standing, at)]


def test_brokers_whose_names_differ_in_a_figure_alone_begin_and_end_each() -> None:
    table = ActiveProblems()
    two, three = (trouble("reader", Kind.UNREACHABLE, broker) for broker in BROKERS)
    assert sentences(table, two) == [two.sentence]
    assert sentences(table, three) == [three.sentence], "the one that is tried next"
    assert sentences(table, two) == []
    assert sentences(table) == [f"over: {two.sentence}", f"over: {three.sentence}"]
    assert sentences(table, two) == [two.sentence], "a new episode"


def test_the_level_is_that_of_the_kind_whatever_the_words() -> None:
    words = "the volume was refused, unverified"
    for message_id, level in (
        (MessageId.APPLIED_UNKNOWN, logging.INFO),
        (MessageId.VOLUME_TROUBLE, logging.WARNING),
    ):
        table = ActiveProblems()
        (begin,) = table.follow([ActiveProblem(message_id, "it", "", words)], 0)
        (end,) = table.follow([], 1)
        assert (begin.level, begin.message_id) == (level, message_id)
        assert (end.level, end.message_id) == (logging.INFO, message_id)


def test_a_trouble_that_lasts_is_logged_every_hour_as_it_is_then() -> None:
    table = ActiveProblems()
    said = [
        line
        for minute in range(150)
        for line in sentences(table, trouble("reader", Kind.TIMEOUT, "b", minute), at=60.0 * minute)
    ]
    first, hour = "reader: b timeout for 0 s", int(STILL_SECONDS // 60)
    assert said == [
        first,
        f"still: reader: b timeout for {hour} s",
        f"still: reader: b timeout for {2 * hour} s",
    ]
    assert sentences(table) == [f"over: {first}"]


def test_what_several_subjects_report_in_the_same_words_is_logged_once() -> None:
    table = ActiveProblems()
    reader, brokers = (
        ActiveProblem.of(subject, KafkaFailure(Kind.UNREACHABLE, "it is down")) for subject in SUBJECTS
    )
    assert sentences(table, reader, brokers) == ["it is down"]
    assert sentences(table, brokers) == [], "it is down still"
    assert sentences(table, reader, brokers, at=STILL_SECONDS) == ["still: it is down"]
    assert sentences(table) == ["over: it is down"]
    assert sentences(table, brokers) == ["it is down"]


def test_what_is_logged_of_one_subject_is_bounded() -> None:
    table = ActiveProblems()
    many = [trouble("reader", Kind.UNREACHABLE, f"kafka{n}:9") for n in range(1000)]
    assert len(sentences(table, *many)) == MAX_OF_SUBJECT
    assert len(sentences(table)) == MAX_OF_SUBJECT


facts = st.frozensets(
    st.tuples(st.sampled_from(SUBJECTS), st.sampled_from(KINDS), st.sampled_from(BROKERS)), max_size=6
)


@given(cycles=st.lists(facts, max_size=30))
@bounded(300)
def test_for_any_sequence_of_facts_each_begins_once_in_an_episode_and_ends_by_its_name(
    cycles: list[frozenset[tuple[str, Kind, str]]],
) -> None:
    table = ActiveProblems()
    running: dict[str, dict[tuple[str, Kind, str], str]] = {}
    for cycle, wrong in enumerate(cycles):
        standing = [trouble(*fact, seconds=cycle) for fact in sorted(wrong)]
        expected = Counter[str]()
        for subject in SUBJECTS:
            of_subject = [fact for fact in wrong if fact[0] == subject]
            if not of_subject:
                expected.update(f"over: {sentence}" for sentence in running.pop(subject, {}).values())
            for fact in of_subject:
                if fact not in running.setdefault(subject, {}):
                    running[subject][fact] = trouble(*fact, seconds=cycle).sentence
                    expected[running[subject][fact]] += 1
        assert Counter(sentences(table, *standing, at=float(cycle))) == expected
