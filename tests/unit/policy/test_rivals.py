"""Other instances that report for a broker: which are kept, and what ends them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from kquota.formats.records import read_event
from kquota.policy.events import Event
from kquota.policy.usage import UsageRecord
from kquota.policy.view import MAX_RIVALS, ClusterView
from tests.unit.policy.situations import NOW, Record, fold, free, raw, usage


def of(instance: str, *, sequence: int = 1, age_seconds: float = 1, **fields: object) -> Record:
    return "1", usage(free(50), InstanceId=instance, Sequence=sequence, age_seconds=age_seconds, **fields)


def read_all(*records: Record) -> Iterator[Event]:
    return (read_event(key, raw(value)) for key, value in records)


def rivals(view: ClusterView) -> list[str | None]:
    return [record.instance_id for record in view.others_of(1, NOW)]


@pytest.mark.accepts("F16")
@pytest.mark.parametrize(
    ("claim", "left"),
    [
        ({"Instance": "a", "Sequence": 5}, []),
        ({"Instance": "a", "Sequence": 6}, []),
        ({"Instance": "a", "Sequence": 4}, ["a"]),  # it has reported since
        ({"Instance": "x", "Sequence": 9}, ["a"]),
        ({"Instance": "a"}, ["a"]),
        ({"Sequence": 9}, ["a"]),
        (None, ["a"]),
        ("a", ["a"]),
    ],
)
def test_another_instance_ends_by_a_claim_up_to_its_number(claim: object, left: list[str]) -> None:
    assert rivals(fold(of("a", sequence=5), of("b", Replaces=claim))) == left


def test_an_instance_without_numbers_ends_by_no_claim() -> None:
    without_number: Record = ("1", usage(free(50), InstanceId="a"))
    claims = {"Instance": "a", "Sequence": 9}
    assert rivals(fold(without_number, of("b", Replaces=claims))) == ["a"]


def test_an_instance_that_reports_again_is_no_rival_of_itself() -> None:
    assert rivals(fold(of("a"), of("b"), of("a", sequence=2))) == ["b"]


def test_the_oldest_of_too_many_instances_is_forgotten() -> None:
    names = [f"i{number}" for number in range(MAX_RIVALS + 1)]
    ages = dict.fromkeys(names, 10.0) | {"i3": 50.0}
    kept = fold(*(of(name, age_seconds=ages[name]) for name in names))
    assert rivals(kept) == names[:-1], "as many as are kept"
    one_more = fold(*(of(name, age_seconds=ages[name]) for name in names), of("newest"))
    assert rivals(one_more) == [name for name in names if name != "i3"]


@pytest.mark.accepts("F16", "F7")
def test_a_record_whose_time_has_come_forgets_no_rival() -> None:
    """Its time may have come before the next record of the broker, which may be from the future again."""
    to_come = of("b", age_seconds=-40)
    view = fold(of("a"), to_come, now=NOW)
    later = NOW + timedelta(seconds=20)
    view.fold_all(read_all(of("b", sequence=2, age_seconds=-90)), later)
    current = view.record_of(1, later)
    assert isinstance(current, UsageRecord)
    assert current.instance_id == "b", "its time has come"
    assert [one.instance_id for one in view.others_of(1, later)] == ["a"]


def test_a_former_record_is_a_rival_of_another_instance_s_in_a_view_read_anew() -> None:
    former = fold(of("a", sequence=5))
    for sequence, left in [(4, ["a"]), (5, [])]:
        claim = {"Instance": "a", "Sequence": sequence}
        view = fold(of("b", Replaces=claim))
        view.take_over(former, NOW)
        assert rivals(view) == left


def test_a_record_without_an_instance_displaces_those_of_instances() -> None:
    assert rivals(fold(of("a"), ("1", usage(free(60))))) == ["a"]
    assert rivals(fold(("1", usage(free(60))), of("a"))) == []


def test_a_record_from_the_horizon_itself_is_kept_as_a_rival() -> None:
    assert rivals(fold(of("a", age_seconds=-30), of("b"))) == ["a"]
