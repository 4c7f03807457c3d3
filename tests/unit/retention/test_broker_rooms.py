"""The room that other brokers have for replicas, by what their agents report."""

from __future__ import annotations

from kquota.retention.broker_rooms import MOST_BROKERS, broker_rooms
from tests.unit.policy.situations import GB, NOW, STALENESS, Record, fold, free, order, usage


def rooms(*records: Record, asked: range = range(1, 9)) -> dict[int, int]:
    return broker_rooms(fold(*records), asked, NOW, STALENESS)


def test_the_fullest_volume_of_a_broker_counts_and_the_roomiest_broker_is_first() -> None:
    found = rooms(
        ("1", usage(free(50), free(35, "/dev/sdb1"))),
        ("2", usage(free(60))),
        ("3", usage(free(15))),
        ("99", usage(free(90))),
    )
    assert list(found.items()) == [(2, 40 * GB), (1, 15 * GB), (3, -5 * GB)], "soft is at 20 GB free"


def test_a_volume_of_metadata_alone_does_not_count() -> None:
    assert rooms(("1", usage(free(50), free(12, "/dev/sdb1", Role="metadata")))) == {1: 30 * GB}


def test_brokers_that_can_t_be_judged_or_are_under_an_order_take_nothing() -> None:
    assert rooms(
        ("1", usage(free(50), age_seconds=61)),
        ("2", usage(free(50), free(50, "/dev/sdb1", Status="failed"))),
        ("3", usage(free(50, Latched=True))),
        ("4", usage(free(50))),
        ("maintenance/4", order()),
        ("5", usage(free(50))),
        ("quarantine/5", order()),
        ("6", None),
        ("7", usage(free(50))),
    ) == {7: 30 * GB}


def test_of_many_brokers_the_roomiest_are_taken() -> None:
    count = MOST_BROKERS + 5
    records = [(str(number), usage(free(20 + number))) for number in range(1, count + 1)]
    found = rooms(*records, asked=range(1, count + 1))
    assert list(found) == list(range(count, 5, -1))
