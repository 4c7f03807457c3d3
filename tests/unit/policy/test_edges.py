"""Edges of records, views and decisions, each at the very value where it turns."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import pytest

from kquota.formats.usage_format import usage_from_document, usage_to_document
from kquota.policy.decision import UndeterminedCause
from kquota.policy.limits import MAX_BYTES, exact_number
from kquota.policy.membership import Membership
from kquota.policy.timestamps import format_utc
from kquota.policy.view import ClusterView
from tests.unit.policy.situations import (
    NOW,
    Record,
    causes,
    decided,
    fold,
    free,
    limit,
    reasons,
    usage,
    verdict,
)

HORIZON_SECONDS = -30.0


@pytest.mark.accepts("A15")
def test_a_record_is_written_with_who_joined_and_whom_it_replaces_by_these_keys() -> None:
    document = usage(free(50), Joined={"7": format_utc(NOW)}, Replaces={"Instance": "a", "Sequence": 3})
    written = usage_to_document(usage_from_document(document))
    assert written["Joined"] == {"7": format_utc(NOW)}
    assert written["Replaces"] == {"Instance": "a", "Sequence": 3}


@pytest.mark.parametrize(
    ("written", "number"),
    [
        (2 * MAX_BYTES, Fraction(2 * MAX_BYTES)),
        (2 * MAX_BYTES + 1, None),
        ("9e19", None),
        ("1e20", None),
    ],
)
def test_the_largest_number_that_is_read(written: int | str, number: Fraction | None) -> None:
    assert exact_number(int(float(written)) if isinstance(written, str) else written) == number


def test_a_soft_limit_of_a_volume_that_can_t_be_judged_is_named() -> None:
    volume = free(50, SoftLimit={"type": "MinFreeBytes", "level": -1})
    record = usage_from_document(usage(volume))
    assert record.invalid_limit is not None
    assert record.invalid_limit.startswith("volume /dev/sda1: SoftLimit")
    sound = usage_from_document(
        usage(free(50, SoftLimit=limit("MinFreeBytes", 30)), HardLimit={"type": "Newer", "level": 1})
    )
    assert sound.volumes[0].limits is None


@pytest.mark.accepts("F16")
def test_of_another_instance_a_record_of_exactly_the_staleness_is_fresh() -> None:
    for age_seconds, expected in ((60.0, "PAUSE"), (60.001, "OPEN")):
        rival: Record = ("1", usage(free(5), InstanceId="a", Sequence=1, age_seconds=age_seconds))
        ours: Record = ("1", usage(free(50), InstanceId="b", Sequence=1))
        assert verdict(decided(rival, ours, fallback="open"))[0] == expected


@pytest.mark.accepts("F16")
def test_of_another_instance_that_is_failed_its_broker_is_named() -> None:
    rival: Record = ("3", usage(free(50, Status="failed"), InstanceId="a", Sequence=1))
    ours: Record = ("3", usage(free(50), InstanceId="b", Sequence=1))
    assert causes(decided(rival, ours)) == [(3, "failed")]


@pytest.mark.accepts("A26")
@pytest.mark.parametrize(("age_seconds", "expected"), [(60.0, "OPEN"), (60.001, "PAUSE")])
def test_a_joining_broker_is_back_with_a_record_of_exactly_the_staleness(
    age_seconds: float, expected: str
) -> None:
    record: Record = ("1", usage(free(5, Status="offline", Latched="HARD"), age_seconds=age_seconds))
    assert verdict(decided(record, active=[1], joining=[1]))[0] == expected


def test_the_whole_cluster_is_undetermined_before_single_brokers() -> None:
    decision = decided(
        ("5", usage(free(50), age_seconds=61)),
        ("0", usage(free(50), age_seconds=61)),
        causes=(UndeterminedCause.NOT_READ,),
    )
    assert causes(decision) == [(None, "not-read"), (0, "stale"), (5, "stale")]
    assert [broker for broker, _, _ in reasons(decision)] == [None, 0, 5]


@pytest.mark.accepts("F16")
def test_another_instance_counts_from_the_very_moment_of_its_record_on() -> None:
    view = fold(
        ("1", usage(free(5), InstanceId="a", age_seconds=HORIZON_SECONDS)),
        ("1", usage(free(50), InstanceId="b", age_seconds=HORIZON_SECONDS)),
    )
    assert [record.instance_id for record in view.others_of(1, NOW)] == ["a"]
    assert view.others_of(1, NOW - timedelta(microseconds=1)) == []


def test_a_pending_record_of_another_instance_makes_it_the_current_one_in_its_time() -> None:
    view = fold(
        ("1", usage(free(50), InstanceId="b")),
        ("1", usage(free(5), InstanceId="a", age_seconds=-31)),
    )
    assert view.others_of(1, NOW) == []
    (other,) = view.others_of(1, NOW + timedelta(seconds=1))
    assert other.instance_id == "b"


def test_a_broker_joined_at_the_horizon_itself_and_at_each_of_two_times() -> None:
    horizon = NOW + timedelta(seconds=30)
    view = fold(
        ("1", usage(free(50), Joined={"7": format_utc(horizon), "8": format_utc(NOW)})),
        ("2", usage(free(50), Joined={"8": format_utc(NOW - timedelta(seconds=5))})),
    )
    assert view.joined(NOW) == {7: [horizon], 8: [NOW, NOW - timedelta(seconds=5)]}


def test_a_first_list_of_brokers_shows_nobody_who_joins() -> None:
    membership = Membership(timedelta(seconds=60), timedelta(seconds=30))
    assert not membership.update(frozenset({1, 2}), NOW, {})
    assert membership.joining(NOW, {}, lambda _: None) == frozenset()
    assert membership.update(frozenset({1, 2, 3}), NOW, {})


def test_a_sighting_ends_with_the_grace_and_with_the_broker() -> None:
    membership = Membership(timedelta(seconds=60), timedelta(seconds=30))
    membership.update(frozenset({1}), NOW, {})
    membership.update(frozenset({1, 2, 3}), NOW, {})
    membership.update(frozenset({1, 2}), NOW + timedelta(seconds=1), {})
    assert membership.sightings.keys() == {2}
    membership.update(frozenset({1, 2, 4}), NOW + timedelta(seconds=60), {})
    assert membership.sightings.keys() == {4}


def test_an_empty_view_has_no_other_instances() -> None:
    assert ClusterView(timedelta(0)).others_of(1, NOW) == []
