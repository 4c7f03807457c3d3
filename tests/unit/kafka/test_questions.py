"""The questions about the topic, and their times; the answers come later."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from kquota.kafka.admin import Pending, TopicFacts
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.kafka.questions import TopicQuestions

FACTS = TopicFacts("t", "an id", frozenset({0, 1}), 1, frozenset())
DOWN = KafkaFailure(Kind.UNREACHABLE, "down")


class Admin:
    """Notes what it is asked and when, and answers when the test does."""

    def __init__(self) -> None:
        self.now = 100.0
        self.longer = 0.0
        self.facts_asked_at: list[float] = []
        self.ends_asked: list[tuple[str, int, float]] = []
        self.open: dict[object, Future[Any]] = {}

    def pause_seconds(self, interval_seconds: float) -> float:
        return self.longer or interval_seconds

    def describe_topic(self, name: str) -> Pending[TopicFacts]:
        self.facts_asked_at.append(self.now)
        return self._ask(name)

    def end_offset(self, topic: str, partition: int) -> Pending[int]:
        self.ends_asked.append((topic, partition, self.now))
        return self._ask(partition)

    def _ask(self, about: object) -> Pending[Any]:
        self.open[about] = Future()
        return Pending(self.open[about].result, self.open[about])

    def answer(self, about: object, value: object) -> None:
        self.open.pop(about).set_result(value)


@pytest.fixture
def admin() -> Admin:
    return Admin()


@pytest.fixture
def questions(admin: Admin) -> TopicQuestions:
    return TopicQuestions(admin, "t", 5.0, clock=lambda: admin.now)  # type: ignore[arg-type]


def answered(admin: Admin, questions: TopicQuestions, facts: TopicFacts | KafkaFailure) -> None:
    assert questions.facts() is None
    admin.answer("t", facts)
    assert questions.facts() is facts


def asked_from(admin: Admin, questions: TopicQuestions, start: float, *, until: float) -> float | None:
    """When the topic is asked about next, looked at each tenth of a second."""
    before = len(admin.facts_asked_at)
    for tenth in range(round(10 * (until - start)) + 1):
        admin.now = round(start + tenth / 10, 1)
        assert questions.facts() is None
        if len(admin.facts_asked_at) > before:
            return admin.now
    return None


def test_the_topic_is_asked_about_at_once_and_once_until_the_answer_is_there(
    admin: Admin, questions: TopicQuestions
) -> None:
    assert asked_from(admin, questions, 100.0, until=130.0) == 100.0
    assert asked_from(admin, questions, 100.1, until=130.0) is None
    admin.answer("t", FACTS)
    assert questions.facts() == FACTS


@pytest.mark.parametrize(("facts", "next_at"), [(FACTS, 105.0), (DOWN, 101.0)])
def test_it_is_asked_again_after_the_interval_and_after_a_failure_sooner(
    admin: Admin, questions: TopicQuestions, facts: TopicFacts | KafkaFailure, next_at: float
) -> None:
    answered(admin, questions, facts)
    assert asked_from(admin, questions, 100.0, until=130.0) == next_at


def test_a_failure_waits_no_longer_than_the_interval(admin: Admin) -> None:
    hasty = TopicQuestions(admin, "t", 0.2, clock=lambda: admin.now)  # type: ignore[arg-type]
    answered(admin, hasty, DOWN)
    assert asked_from(admin, hasty, 100.0, until=130.0) == 100.2


def test_a_look_that_is_wanted_soon_comes_at_once_but_not_in_a_hurry(
    admin: Admin, questions: TopicQuestions
) -> None:
    answered(admin, questions, FACTS)
    questions.look_soon()
    assert asked_from(admin, questions, 100.0, until=130.0) == 100.3
    admin.answer("t", FACTS)
    assert questions.facts() == FACTS
    admin.now = 103.0
    questions.look_soon()
    assert asked_from(admin, questions, 103.0, until=130.0) == 103.0


def test_to_want_a_look_soon_never_delays_one(admin: Admin, questions: TopicQuestions) -> None:
    questions.look_soon()
    assert asked_from(admin, questions, 100.0, until=130.0) == 100.0
    admin.answer("t", DOWN)
    assert questions.facts() is DOWN
    questions.look_soon()
    questions.look_soon()
    assert asked_from(admin, questions, 100.0, until=130.0) == 100.3


def test_ends_are_asked_for_together_and_handed_over_as_they_come(
    admin: Admin, questions: TopicQuestions
) -> None:
    assert questions.ends(frozenset({0, 1})) == {}
    assert sorted(admin.ends_asked) == [("t", 0, 100.0), ("t", 1, 100.0)]
    admin.answer(1, 17)
    assert questions.ends(frozenset({0, 1})) == {1: 17}
    admin.now = 130.0
    assert questions.ends(frozenset({0})) == {}
    assert len(admin.ends_asked) == 2, "what is not answered yet is not asked again"
    admin.answer(0, 0)
    assert questions.ends(frozenset({0})) == {0: 0}


def test_an_end_that_could_not_be_had_is_asked_for_again_after_a_second(
    admin: Admin, questions: TopicQuestions
) -> None:
    questions.ends(frozenset({0}))
    admin.answer(0, DOWN)
    admin.now = 100.9
    assert questions.ends(frozenset({0})) == {}
    assert len(admin.ends_asked) == 1
    admin.now = 101.0
    questions.ends(frozenset({0}))
    assert [at for *_, at in admin.ends_asked] == [100.0, 101.0]


def test_a_partition_that_comes_later_is_asked_about_at_once(admin: Admin, questions: TopicQuestions) -> None:
    assert questions.ends(frozenset()) == {}
    assert admin.ends_asked == []
    questions.ends(frozenset({3}))
    assert admin.ends_asked == [("t", 3, 100.0)]


def test_answers_about_the_former_topic_are_forgotten(admin: Admin, questions: TopicQuestions) -> None:
    questions.ends(frozenset({0}))
    former = admin.open[0]
    questions.forget_ends()
    former.set_result(5000)
    assert questions.ends(frozenset({0})) == {}
    assert len(admin.ends_asked) == 2, "and asked for at once"
    admin.answer(0, 3)
    assert questions.ends(frozenset({0})) == {0: 3}


def test_an_admin_that_is_asked_rarely_makes_the_pauses_longer(
    admin: Admin, questions: TopicQuestions
) -> None:
    admin.longer = 20.0
    questions.facts()
    admin.answer("t", FACTS)
    assert questions.facts() == FACTS
    admin.now += 19
    assert questions.facts() is None
    assert len(admin.facts_asked_at) == 1
    admin.now += 1
    questions.facts()
    assert len(admin.facts_asked_at) == 2
