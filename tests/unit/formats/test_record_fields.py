"""The fields of a record: the smallest and largest values that are read, and the words for others."""

from __future__ import annotations

import pytest

from kquota.formats.records import MAX_BROKER_ID, read_event
from kquota.formats.strict_json import MAX_TEXT, InvalidJson, parse_json
from kquota.formats.usage_fields import MalformedRecord
from kquota.formats.usage_format import usage_from_document
from kquota.policy.events import BrokerOrder, BrokerOrderEvent, IgnoredEvent
from kquota.policy.limit_breaches import Basis
from kquota.policy.limits import MAX_BYTES
from kquota.policy.timestamps import from_epoch_ms
from tests.unit.policy.situations import Value, free, raw, usage

NEWER = {"type": "Newer", "level": 1}


def volume(**fields: object) -> dict[str, object]:
    return {"VolumeName": "/dev/sda1", "Capacity": 10, "Consumed": 5, **fields}


@pytest.mark.parametrize(
    ("capacity", "consumed"), [(0, 0), (1, 0), (MAX_BYTES, 0), (MAX_BYTES, MAX_BYTES), (1.0, 1.0)]
)
def test_the_smallest_and_the_largest_volume_are_read(capacity: float, consumed: float) -> None:
    (read,) = usage_from_document(usage(volume(Capacity=capacity, Consumed=consumed))).volumes
    assert (read.capacity_bytes, read.consumed_bytes) == (capacity, consumed)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"Capacity": -1}, "Volumes[1].Capacity: "),
        ({"Consumed": 0.5}, "Volumes[1].Consumed: "),
        ({"Capacity": MAX_BYTES + 1}, "Volumes[1].Capacity: "),
        ({"Consumed": 11}, "Volumes[1].Consumed: 11 "),
        ({"Status": 7}, "Volumes[1].Status: "),
        ({"Latched": 7}, "Volumes[1].Latched: "),
        ({"VolumeName": "x" * (MAX_TEXT + 1)}, "Volumes[1].VolumeName: "),
        ({"VolumeName": "/dev/sdb1"}, "Volumes: two "),
    ],
)
def test_a_volume_that_can_t_be_read_is_named_by_its_place(fields: dict[str, object], problem: str) -> None:
    first = volume(VolumeName="/dev/sdb1")
    with pytest.raises(MalformedRecord) as error:
        usage_from_document(usage(first, volume(**fields)))
    assert str(error.value).startswith(problem)


def test_the_longest_name_is_read() -> None:
    (read,) = usage_from_document(usage(volume(VolumeName="x" * MAX_TEXT))).volumes
    assert read.name == "x" * MAX_TEXT


@pytest.mark.parametrize(("hard", "soft", "named"), [(None, NEWER, "SoftLimit"), (NEWER, None, "HardLimit")])
def test_a_limit_of_a_newer_type_is_named_and_the_volumes_have_no_limits_of_their_own_fault(
    hard: object, soft: object, named: str
) -> None:
    changed = {key: value for key, value in (("HardLimit", hard), ("SoftLimit", soft)) if value is not None}
    record = usage_from_document(usage(free(50), **changed))
    assert record.limits_problem is not None
    assert record.limits_problem.startswith(named)
    assert [(one.limits, one.limits_problem) for one in record.volumes] == [(None, None)]


@pytest.mark.parametrize(
    ("sequence", "read"), [(0, 0), (1, 1), (MAX_BYTES, MAX_BYTES), (MAX_BYTES + 1, None), (True, None)]
)
def test_a_sequence_is_a_whole_number_from_zero_on(sequence: object, read: int | None) -> None:
    assert usage_from_document(usage(free(50), Sequence=sequence)).sequence == read


def test_a_latch_without_limits_to_judge_it_by_is_a_latch_and_no_measured_breach() -> None:
    record = usage_from_document(usage(free(50, Latched="HARD"), HardLimit=NEWER))
    (vote,) = record.votes
    assert vote.basis is Basis.LATCH


@pytest.mark.parametrize(
    ("key", "value", "event"),
    [
        (None, b"{}", IgnoredEvent("")),
        (b"\xff", b"{}", IgnoredEvent(repr(b"\xff"))),
        (b"nobody-knows-it", b"{}", IgnoredEvent("nobody-knows-it")),
        (f"quarantine/{MAX_BROKER_ID + 1}", None, IgnoredEvent(f"quarantine/{MAX_BROKER_ID + 1}")),
        (
            f"quarantine/{MAX_BROKER_ID}",
            None,
            BrokerOrderEvent(BrokerOrder.QUARANTINE, MAX_BROKER_ID, None),
        ),
    ],
)
def test_a_key_is_an_order_a_broker_or_ignored_by_its_name(
    key: bytes | str | None, value: Value, event: object
) -> None:
    assert read_event(key, raw(value)) == event


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1, "a": 2}', "an object has "),
        ("[" * 100_000, "nested too deeply"),
        ("{", "Expecting property name"),
    ],
)
def test_json_that_can_t_be_read_says_why(text: str, problem: str) -> None:
    with pytest.raises(InvalidJson) as error:
        parse_json(text)
    assert str(error.value).startswith(problem)
    assert len(str(error.value)) <= 200


def test_json_of_exactly_the_largest_size_is_read() -> None:
    assert parse_json(b'"abc"', 5) == "abc"
    with pytest.raises(InvalidJson):
        parse_json(b'"abcd"', 5)


@pytest.mark.parametrize(("milliseconds", "known"), [(-1, False), (0, True), (1, True), (None, False)])
def test_a_time_of_a_record_begins_with_the_epoch(milliseconds: int | None, known: bool) -> None:
    assert (from_epoch_ms(milliseconds) is not None) is known
