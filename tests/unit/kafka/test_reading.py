"""The reader's output and actions for any answers of its consumer and its admin."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError

from kquota.formats.records import TopicKind, TopicRecord
from kquota.guard.event_queue import MAX_HELD_BYTES
from kquota.kafka import followed_topic
from kquota.kafka import reader as reading
from kquota.kafka.config import ClientProperties, Role
from kquota.kafka.errors import KafkaFailure, Kind, Operation
from kquota.kafka.followed_topic import ReadTopic
from kquota.kafka.topic_records import (
    CaughtUp,
    PartitionsChanged,
    ReadingFailed,
    ReadingRecovered,
    TopicRestarted,
)
from tests.integration.waiting import eventually
from tests.unit.kafka.scripted import Message, Script, facts
from tests.unit.repository.tree import REPOSITORY

NOWHERE = ClientProperties({"bootstrap.servers": "127.0.0.1:1"}, node=1)
DENIED = KafkaFailure(Kind.ACL_DENIED, "denied")
DOWN = KafkaFailure(Kind.UNREACHABLE, "down")
EOF = KafkaError._PARTITION_EOF
KAFKAS_SOCKET_REQUEST_MAX_BYTES = 104_857_600


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    script = Script()
    monkeypatch.setattr(reading, "RotatingClient", script.make)
    return script


@pytest.fixture
def script_with_ends(script: Script) -> Script:
    script.ends = {0: 2}
    return script


@pytest.fixture
def seen(script: Script) -> Iterator[list[Any]]:
    """The reader's output; it begins to read when it is asked for."""
    seen: list[Any] = []
    reader = reading.TopicReader(NOWHERE, script, ReadTopic("t", seen.append, topic_interval_seconds=0.05))  # type: ignore[arg-type]
    reader.start()
    yield seen
    reader.close()
    assert script.closed


@pytest.mark.accepts("F6")
@pytest.mark.parametrize("unit", ["kquota-agent.service", "kquota-agent@.service"])
def test_the_largest_records_that_brokers_take_fit_the_memory_of_the_unit(
    script: Script, seen: list[Any], unit: str
) -> None:
    _, _, _, settings, _ = script.made_with
    text = (REPOSITORY / "packaging/systemd" / unit).read_text("utf-8")
    memory_gib = int(text.partition("\nMemoryMax=")[2].partition("G\n")[0])
    largest_bytes = int(settings["receive.message.max.bytes"])
    assert largest_bytes > KAFKAS_SOCKET_REQUEST_MAX_BYTES, "what a broker has taken can be read"
    assert 4 * largest_bytes <= memory_gib * 2**30 / 2, "received, taken in, waiting and in a cycle"
    assert int(settings["queued.max.messages.kbytes"]) * 1024 <= MAX_HELD_BYTES / 2


def of(seen: list[Any], *kinds: type) -> list[Any]:
    return [what for what in list(seen) if isinstance(what, kinds)]


def offsets(seen: list[Any]) -> list[int]:
    return [record.offset for record in of(seen, TopicRecord)]


def begun(script: Script) -> None:
    eventually(lambda: script.assigned, "the partitions are assigned")


def test_the_consumer_reads_alone_and_commits_nothing(script: Script, seen: list[Any]) -> None:
    kind, properties, role, settings, more = script.made_with
    assert (kind, properties, role) == (Consumer, NOWHERE, Role.READER)
    assert settings["group.id"] == NOWHERE.client_id(Role.READER)
    assert settings["enable.auto.commit"] == "false"
    assert settings["auto.offset.reset"] == "error"
    assert more["retire"] is Consumer.close


def test_each_record_is_handed_over_as_it_is(script: Script, seen: list[Any]) -> None:
    begun(script)
    script.say(
        Message(0, headers=[("Actor", b"me"), ("Reason", None)]),
        Message(1, timestamp=(TIMESTAMP_NOT_AVAILABLE, -1)),
        Message(7),
    )
    eventually(lambda: len(of(seen, TopicRecord)) == 3, "all are handed over")
    assert of(seen, TopicRecord) == [
        TopicRecord(b"key", b"0", 1234, headers=(("Actor", b"me"), ("Reason", None))),
        TopicRecord(b"key", b"1", offset=1),
        TopicRecord(b"key", b"7", 1234, offset=7),
    ]
    assert of(seen, PartitionsChanged) == [PartitionsChanged(1)]
    assert script.contacts >= 3


NO_UTF_8 = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")


def test_a_record_whose_headers_cannot_be_read_has_none(script: Script, seen: list[Any]) -> None:
    begun(script)
    script.say(Message(0), Message(1, headers=NO_UTF_8), Message(2), Message(3, EOF))
    eventually(lambda: of(seen, CaughtUp) == [CaughtUp(3)], "it has read all")
    assert offsets(seen) == [0, 1, 2]
    assert of(seen, TopicRecord)[1].headers == ()


def test_a_message_that_cannot_be_read_costs_no_other_one_and_is_never_taken_for_read(
    script: Script, seen: list[Any]
) -> None:
    begun(script)
    script.say(Message(0), Message(1, headers=ValueError("a mistake")), Message(2), Message(3, EOF))
    eventually(lambda: offsets(seen) == [0, 2], "those next to it are handed over")
    eventually(lambda: [one.same_topic for one in of(seen, TopicRestarted)] == [True], "it begins again")
    assert of(seen, CaughtUp) == []
    script.say(Message(0), Message(1), Message(2), Message(3, EOF))
    eventually(lambda: of(seen, CaughtUp), "it has read all")
    assert offsets(seen) == [0, 2, 0, 1, 2]


def test_what_is_of_no_partition_of_the_topic_is_left_out(script: Script, seen: list[Any]) -> None:
    begun(script)
    strange = [Message(5, partition=9), Message(None), Message(5, partition=None)]
    script.say(*strange, Message(None, EOF), Message(3, EOF, partition=None), Message(4))
    eventually(lambda: offsets(seen) == [4], "what follows is handed over")
    assert of(seen, CaughtUp, ReadingFailed) == []


def test_it_has_caught_up_once_and_says_with_how_many_records(script: Script, seen: list[Any]) -> None:
    script.facts = facts("an id", {0, 1})
    eventually(lambda: script.assigned and len(script.assigned[-1]) == 2, "both are assigned")
    script.say(Message(0), Message(1), Message(2, EOF))
    script.say(Message(0, partition=1))
    eventually(lambda: len(offsets(seen)) == 3, "the records are handed over")
    assert of(seen, CaughtUp) == []
    script.say(Message(1, EOF, partition=1))
    script.say(Message(2), Message(3, EOF))
    eventually(lambda: len(offsets(seen)) == 4, "it reads on")
    assert of(seen, CaughtUp) == [CaughtUp(3)]


def test_where_a_partition_ends_is_asked_for_and_enough(script_with_ends: Script, seen: list[Any]) -> None:
    begun(script_with_ends)
    script_with_ends.say(Message(0), Message(1))
    eventually(lambda: of(seen, CaughtUp) == [CaughtUp(2)], "it has caught up without the broker's word")


@pytest.mark.parametrize("good", [Message(4), Message(4, EOF)])
def test_a_failure_to_read_is_told_and_so_is_its_end(script: Script, seen: list[Any], good: Message) -> None:
    begun(script)
    script.say(Message(0, KafkaError.TOPIC_AUTHORIZATION_FAILED))
    (failed,) = eventually(lambda: of(seen, ReadingFailed), "the failure is reported")
    failure = failed.failure
    assert (failure.kind, failure.operation, failure.topic) == (Kind.ACL_DENIED, Operation.READ, "t")
    assert script.explained == 1
    assert of(seen, ReadingRecovered) == []
    script.say(good)
    eventually(lambda: of(seen, ReadingRecovered) == [ReadingRecovered()], "its end is reported")


def test_while_it_fails_to_fetch_the_partitions_are_asked_for_again(
    script: Script, seen: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka reports the end of a partition once for each assignment."""
    monkeypatch.setattr(followed_topic, "FETCH_AGAIN_SECONDS", 0.05)
    begun(script)
    script.say(Message(0), Message(1, EOF), Message(1, KafkaError.TOPIC_AUTHORIZATION_FAILED))
    eventually(lambda: list(script.assigned)[1:] != [], "they are assigned again")
    assert list(script.assigned)[-1] == [("t", 0, 1)], "from where it was"
    script.say(Message(1, EOF))
    eventually(lambda: of(seen, ReadingRecovered), "its end is reported")
    assigned = len(script.assigned)
    script.say(Message(1))
    eventually(lambda: offsets(seen) == [0, 1], "it reads on")
    time.sleep(0.2)
    assert len(script.assigned) <= assigned + 1


def test_the_group_that_is_not_used_needs_no_permission(script: Script, seen: list[Any]) -> None:
    begun(script)
    script.say(Message(None, KafkaError.GROUP_AUTHORIZATION_FAILED), Message(0))
    eventually(lambda: offsets(seen) == [0], "what follows is handed over")
    assert of(seen, ReadingFailed) == []


def test_a_failure_to_describe_the_topic_ends_by_itself(script: Script, seen: list[Any]) -> None:
    begun(script)
    script.facts = DENIED
    eventually(lambda: of(seen, ReadingFailed)[:1] == [ReadingFailed(DENIED)], "the failure is reported")
    script.say(Message(0))
    eventually(lambda: offsets(seen) == [0], "it reads on")
    assert of(seen, ReadingRecovered) == [], "a record says nothing about the description"
    script.facts = facts("an id", {0})
    eventually(lambda: of(seen, ReadingRecovered), "its end is reported")


def test_without_a_connection_the_problem_is_told(script: Script, seen: list[Any]) -> None:
    script.connected = False
    time.sleep(0.3)
    assert of(seen, ReadingFailed) == [], "it has not even been tried"
    script.problem = DENIED
    eventually(lambda: of(seen, ReadingFailed)[:1] == [ReadingFailed(DENIED)], "the problem is reported")
    script.connected = True
    script.say(Message(0))
    eventually(lambda: of(seen, ReadingRecovered), "its end is reported")


def test_partitions_that_come_later_are_read_from_their_beginning(script: Script, seen: list[Any]) -> None:
    begun(script)
    assert list(script.assigned)[-1] == [("t", 0, OFFSET_BEGINNING)]
    script.say(Message(0), Message(1))
    eventually(lambda: offsets(seen) == [0, 1], "partition 0 is read")
    script.facts = facts("an id", {0, 1})
    eventually(
        lambda: list(script.assigned)[-1] == [("t", 0, 2), ("t", 1, OFFSET_BEGINNING)], "both are assigned"
    )
    assert of(seen, PartitionsChanged) == [PartitionsChanged(1), PartitionsChanged(2)]


def test_a_new_consumer_goes_on_where_the_former_one_stood(script: Script, seen: list[Any]) -> None:
    begun(script)
    script.say(Message(0), Message(1))
    eventually(lambda: offsets(seen) == [0, 1], "it has read")
    before = len(script.assigned)
    script.generation = 2
    eventually(lambda: len(script.assigned) > before, "the new consumer gets its partitions")
    assert script.assigned[-1] == [("t", 0, 2)]
    time.sleep(0.2)
    assert len(script.assigned) == before + 1, "and gets them once"


def test_an_assignment_that_fails_is_told_and_tried_again(script: Script, seen: list[Any]) -> None:
    script.refuse_assignments = 2
    begun(script)
    assert [failed.failure.kind for failed in of(seen, ReadingFailed)] == [Kind.OTHER, Kind.OTHER]


def test_a_description_from_before_the_topic_was_made_again_changes_nothing(
    script: Script, seen: list[Any]
) -> None:
    begun(script)
    script.say(Message(0))
    eventually(lambda: offsets(seen) == [0], "the former topic is read")
    script.facts = facts("new id", {0})
    eventually(lambda: of(seen, TopicRestarted), "the new topic is seen")
    script.facts = facts("an id", {0, 1, 2})
    asked = script.described
    eventually(lambda: script.described > asked + 3, "an old description has come")
    assert [len(assigned) for assigned in script.assigned] == [1, 1]
    (restarted,) = of(seen, TopicRestarted)
    assert (restarted.topic_id, restarted.same_topic) == ("new id", False)
    assert script.assigned[-1] == [("t", 0, OFFSET_BEGINNING)]


@pytest.mark.parametrize(
    "code", [KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._LOG_TRUNCATION]
)
def test_an_offset_that_is_not_there_means_to_begin_again(script: Script, seen: list[Any], code: int) -> None:
    begun(script)
    script.say(Message(0), Message(1, EOF))
    eventually(lambda: of(seen, CaughtUp) == [CaughtUp(1)], "it has caught up")
    script.say(Message(1, code))
    (restarted,) = eventually(lambda: of(seen, TopicRestarted), "it begins again")
    assert (restarted.topic_id, restarted.same_topic) == ("an id", True)
    assert restarted.reason == KafkaError(code).str()
    script.say(Message(0), Message(1, EOF))
    eventually(lambda: of(seen, CaughtUp) == [CaughtUp(1), CaughtUp(2)], "it has caught up again")
    assert of(seen, PartitionsChanged) == [PartitionsChanged(1), PartitionsChanged(1)]


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.OFFSET_OUT_OF_RANGE])
def test_where_the_topic_may_be_another_one_it_is_looked_at_soon(
    script: Script, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    reader = reading.TopicReader(NOWHERE, script, ReadTopic("t", lambda _: None, topic_interval_seconds=3600))  # type: ignore[arg-type]
    reader.start()
    begun(script)
    script.say(Message(0))
    assert script.described == 1
    script.say(Message(1, code))
    eventually(lambda: script.described == 2, "the topic is looked at long before its time")
    reader.close()


def test_one_broker_of_several_that_is_down_is_no_failure(script: Script, seen: list[Any]) -> None:
    begun(script)
    script.on_failure(DOWN)
    assert of(seen, ReadingFailed) == []
    script.on_failure(DENIED)
    assert of(seen, ReadingFailed) == [ReadingFailed(DENIED)]
    script.all_brokers_down = True
    script.on_failure(DOWN)
    assert of(seen, ReadingFailed) == [ReadingFailed(DENIED), ReadingFailed(DOWN)]


def test_while_the_connection_is_down_a_leader_is_asked_until_it_answers(
    script: Script, seen: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_RETRY_SECONDS", 0.1)
    begun(script)
    time.sleep(0.2)
    assert script.probes == [], "a connection that is up is not tried"
    script.all_brokers_down = True
    script.on_failure(DOWN)
    eventually(lambda: script.probes[:2] == [("t", 0)] * 2, "a leader is asked, and again")
    assert of(seen, ReadingRecovered) == []
    contacts = script.contacts
    script.answers_probes = True
    eventually(lambda: of(seen, ReadingRecovered), "its answer ends the failure")
    assert script.contacts > contacts
    asked = len(script.probes)
    time.sleep(0.5)
    assert len(script.probes) == asked


@pytest.mark.parametrize("knows", [True, False])
def test_before_partitions_are_assigned_their_leaders_are_asked_for(script: Script, knows: bool) -> None:
    """Otherwise librdkafka begins half a second later."""
    script.knows_leaders = knows
    reader = reading.TopicReader(NOWHERE, script, ReadTopic("t", print))  # type: ignore[arg-type]
    reader.start()
    try:
        begun(script)
    finally:
        reader.close()
    assert script.leaders_asked == ["t"]


@pytest.mark.parametrize(
    ("passing", "longest_seconds", "fetch_wait_ms"), [(False, 0.5, 500), (True, 0.05, 20)]
)
def test_a_reader_that_is_only_passing_waits_for_less(
    script: Script, passing: bool, longest_seconds: float, fetch_wait_ms: int
) -> None:
    seen: list[Any] = []
    reader = reading.TopicReader(NOWHERE, script, ReadTopic("t", seen.append), passing=passing)  # type: ignore[arg-type]
    reader.start()
    try:
        begun(script)
        script.say(Message(0, EOF))
        eventually(lambda: of(seen, CaughtUp), "it has read everything")
        eventually(lambda: script.polls[-1] == longest_seconds, "it waits")
    finally:
        reader.close()
    _, _, _, settings, _ = script.made_with
    assert settings["fetch.wait.max.ms"] == str(fetch_wait_ms)


def test_nothing_is_handed_over_after_the_end(script: Script) -> None:
    seen: list[Any] = []
    reader = reading.TopicReader(NOWHERE, script, ReadTopic("t", seen.append))  # type: ignore[arg-type]
    reader.close()
    script.on_failure(DENIED)
    assert seen == []


@pytest.fixture
def both(script: Script) -> Iterator[tuple[list[Any], list[Any]]]:
    """The output of a reader of two topics, by topic."""
    usage: list[Any] = []
    orders: list[Any] = []
    reader = reading.TopicReader(
        NOWHERE,
        script,  # type: ignore[arg-type]
        ReadTopic("usage", usage.append, topic_interval_seconds=0.05),
        ReadTopic("orders", orders.append, topic_interval_seconds=0.05, kind=TopicKind.ORDERS),
    )
    reader.start()
    yield usage, orders
    reader.close()


def of_both(script: Script) -> None:
    eventually(lambda: len(script.assigned) == 2, "the partitions of both topics are assigned")


def test_one_consumer_reads_two_topics_each_for_its_receiver(
    script: Script, both: tuple[list[Any], list[Any]]
) -> None:
    usage, orders = both
    of_both(script)
    assert [one for (one,) in script.assigned] == [
        ("usage", 0, OFFSET_BEGINNING),
        ("orders", 0, OFFSET_BEGINNING),
    ]
    script.say(
        Message(0, topic="usage"),
        Message(0, topic="orders"),
        Message(1, topic="another"),
        Message(1, EOF, topic="orders"),
    )
    eventually(lambda: of(orders, CaughtUp) == [CaughtUp(1, TopicKind.ORDERS)], "the orders are read")
    assert (offsets(usage), offsets(orders), of(usage, CaughtUp)) == ([0], [0], [])
    assert of(orders, TopicRecord)[0].appended_ms is None, "its writer has set the time"


def test_a_topic_that_may_not_be_read_does_not_hold_up_the_other(
    script: Script, both: tuple[list[Any], list[Any]]
) -> None:
    usage, orders = both
    of_both(script)
    script.say(Message(0, KafkaError.TOPIC_AUTHORIZATION_FAILED, topic="orders"))
    script.say(Message(0, topic="usage"), Message(1, EOF, topic="usage"))
    eventually(lambda: of(usage, CaughtUp) == [CaughtUp(1)], "the other one is read")
    assert [one.failure.topic for one in of(orders, ReadingFailed)] == ["orders"]
    assert of(orders, ReadingRecovered) == of(usage, ReadingFailed) == []


def test_a_topic_is_read_again_while_the_reading_of_the_other_goes_on(
    script: Script, both: tuple[list[Any], list[Any]]
) -> None:
    usage, orders = both
    of_both(script)
    script.say(Message(0, topic="usage"), Message(0, topic="orders"))
    eventually(lambda: offsets(orders) == [0], "both are read")
    script.say(Message(1, KafkaError.OFFSET_OUT_OF_RANGE, topic="orders"))
    eventually(lambda: of(orders, TopicRestarted), "it begins again")
    eventually(lambda: len(script.assigned) == 3, "it is assigned again")
    assert list(script.taken_away) == [[("orders", 0)]]
    assert script.assigned[-1] == [("orders", 0, OFFSET_BEGINNING)]
    assert of(usage, TopicRestarted) == []


def test_an_answer_about_one_topic_shows_that_the_connection_of_both_stands(
    script: Script, both: tuple[list[Any], list[Any]]
) -> None:
    usage, orders = both
    of_both(script)
    script.all_brokers_down = True
    script.on_failure(DOWN)
    assert of(usage, ReadingFailed) == [ReadingFailed(DOWN)]
    assert of(orders, ReadingFailed) == [ReadingFailed(DOWN, TopicKind.ORDERS)]
    script.say(Message(0, topic="usage"))
    eventually(lambda: of(orders, ReadingRecovered), "its end is reported to the other one, too")
    assert of(usage, ReadingRecovered)


def test_an_error_without_a_topic_concerns_both(script: Script, both: tuple[list[Any], list[Any]]) -> None:
    usage, orders = both
    of_both(script)
    script.say(Message(None, KafkaError._TRANSPORT, topic=None, partition=None))
    for seen in (usage, orders):
        eventually(lambda seen=seen: of(seen, ReadingFailed), "the failure is reported")
