"""The counts of partitions that a broker leads, and their file."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.quotas.partition_counts import leaders_document, partition_counts
from tests.unit.policy.golden import Sample, complaints, each, refused_by_schema, sample

LEADERS = st.dictionaries(
    st.text("ab._-", min_size=1, max_size=6),
    st.lists(st.none() | st.integers(0, 5), max_size=12),
    max_size=6,
)


@given(LEADERS)
def test_the_counts_of_all_brokers_add_up_to_the_partitions_with_a_leader(
    leaders: dict[str, list[int | None]],
) -> None:
    by_broker = [partition_counts(leaders, broker_id) for broker_id in range(6)]
    for topic, of_topic in leaders.items():
        alls = {counts[topic][1] for counts in by_broker}
        assert alls == {sum(leader is not None for leader in of_topic)}, "each broker counts the same whole"
        (whole,) = alls
        assert sum(Fraction(counts[topic][0], whole or 1) for counts in by_broker) == (whole > 0)


@pytest.mark.accepts("C5")
def test_two_of_eight_partitions_are_counted_and_those_without_a_leader_nowhere() -> None:
    leaders = {"orders": [1, 1, 2, 2, 2, 3, 3, 3, None], "other": [2], "gone": [None]}
    assert partition_counts(leaders, 1) == {"orders": (2, 8), "other": (0, 1), "gone": (0, 0)}


@given(LEADERS, st.integers(0, 2**31 - 1))
def test_what_is_written_is_a_leaders_file(leaders: dict[str, list[int | None]], broker_id: int) -> None:
    counts = partition_counts(leaders, broker_id)
    document = leaders_document(counts, cluster_id="c", broker_id=broker_id, boot_id="b", seen_uptime_ms=5)
    assert complaints("leaders", json.loads(json.dumps(document))) == []


def test_the_golden_sample_is_what_is_written() -> None:
    written = sample("leaders", "three-topics")
    counts = {"orders-us": (0, 8), "orders-eu": (2, 8), "__consumer_offsets": (17, 50)}
    document = leaders_document(
        counts,
        cluster_id=written["cluster_id"],
        broker_id=1,
        boot_id=written["boot_id"],
        seen_uptime_ms=123440000,
    )
    assert json.loads(json.dumps(document)) == written


@each("leaders", "valid")
def test_the_schema_accepts_valid_samples(golden: Sample) -> None:
    assert complaints("leaders", golden.document) == []


@each("leaders", "invalid")
def test_the_schema_refuses_invalid_samples(golden: Sample) -> None:
    assert refused_by_schema("leaders", golden.text)
