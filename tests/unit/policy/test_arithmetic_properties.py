"""Exact arithmetic: headroom, the written factor, the latch, and the record's round trip."""

from __future__ import annotations

import json
from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.formats.usage_format import parse_usage, usage_from_document, usage_to_document
from kquota.policy.decision import State, written_factor
from kquota.policy.latch import latch_volumes
from kquota.policy.limits import MAX_BYTES, Limit, LimitPair, LimitType
from kquota.policy.usage import UsageRecord
from kquota.policy.volume import Volume, VolumeRole, VolumeStatus
from tests.unit.policy.clusters import bounded, limit_pairs
from tests.unit.policy.golden import complaints
from tests.unit.policy.oracle import Message, volume_headroom
from tests.unit.policy.situations import NOW, usage

sizes = st.integers(0, MAX_BYTES) | st.integers(0, 2000)


@pytest.mark.accepts("A3", "A4", "A5", "A7", "A24", "A29")
@given(pair=limit_pairs(), one=sizes, other=sizes)
@bounded(500)
def test_headroom_is_exactly_that_of_the_formula(pair: tuple[Message, Message], one: int, other: int) -> None:
    volume = {"VolumeName": "a", "Capacity": max(one, other), "Consumed": min(one, other)}
    message = usage(volume, SoftLimit=pair[0], HardLimit=pair[1])
    found = usage_from_document(message).volumes[0].headroom()
    assert found == volume_headroom(message, volume)
    assert found is None or 0 <= found <= 1


@pytest.mark.accepts("A1", "A4")
@given(
    headroom=st.fractions(0, 1)
    | st.fractions(0, Fraction(1, 10**6))
    | st.fractions(Fraction(999_999, 10**6), 1)
)
@bounded(300)
def test_the_written_factor_never_contradicts_the_state(headroom: Fraction) -> None:
    factor, state = written_factor(headroom), State.of_headroom(headroom)
    assert (factor == 1, factor == 0) == (state is State.OPEN, state is State.PAUSE)
    assert state is not State.THROTTLE or 0.000001 <= factor <= 0.999999
    assert abs(Fraction(repr(factor)) - headroom) <= Fraction(1, 10**6)
    assert len(f"{factor:.6f}") == 8
    assert float(f"{factor:.6f}") == factor  # 6 decimals hold all of it


@pytest.mark.accepts("A30", "F29")
@given(
    walk=st.lists(st.integers(0, 1000), min_size=1, max_size=60),
    margin=st.fractions(Fraction(1, 100), Fraction(1, 2)),
)
@bounded(200)
def test_a_latch_is_set_only_at_hard_and_released_only_above_the_margin(
    walk: list[int], margin: Fraction
) -> None:
    limits = LimitPair(Limit.of(LimitType.CONSUMED_SPACE, 600), Limit.of(LimitType.CONSUMED_SPACE, 900))
    current: tuple[Volume, ...] = ()
    latched, turns, moved = False, 0, 0
    for consumed, before in zip(walk, [walk[0], *walk], strict=False):
        fresh = Volume("a", 1000, consumed, limits, volume_id="fs")
        headroom = fresh.headroom()
        assert headroom is not None
        current = latch_volumes(current, [fresh], margin)
        moved += abs(consumed - before)
        if current[0].latched is not latched:
            assert headroom > margin if latched else headroom == 0
            turns, latched = turns + 1, not latched
        assert latched or headroom > 0
        assert not latched or headroom <= margin
    # each turn but the first takes a way of the margin's width: small fluctuations can't flap
    assert (turns - 1) * margin * 300 <= moved


texts = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=20)
texts_or_none = st.none() | texts
kinds = st.sampled_from([LimitType.MIN_FREE_BYTES, LimitType.MIN_FREE_PERCENTAGE])
two_levels = st.lists(st.integers(0, 1000), min_size=2, max_size=2, unique=True)
volume_names = st.lists(texts, min_size=1, max_size=4, unique=True)
several_texts = st.lists(texts, max_size=3)
statuses, roles, booleans = st.sampled_from(VolumeStatus), st.sampled_from(VolumeRole), st.booleans()
rates = st.none() | st.integers(-(2**40), 2**40)
milliseconds = st.integers(-(10**9), 10**9)
sequences = st.none() | st.integers(0, MAX_BYTES)


@st.composite
def publishable(draw: st.DrawFn) -> UsageRecord:
    """A record as an agent makes it: valid limits, unique names, figures that can be."""
    kind = draw(kinds)
    unit = 10 if kind is LimitType.MIN_FREE_PERCENTAGE else 1
    low, high = sorted(draw(two_levels))
    hard, soft = (Limit.of(kind, Fraction(level, unit)) for level in (low, high))
    consumed_hard = Limit.of(LimitType.CONSUMED_SPACE, draw(sizes))
    volumes = []
    for name in draw(volume_names):
        own_hard = draw(st.none() | st.just(consumed_hard))
        low, high = sorted((draw(sizes), draw(sizes)))
        volumes.append(
            Volume(
                name=name,
                capacity_bytes=high,
                consumed_bytes=low,
                limits=LimitPair(soft, own_hard or hard),
                volume_id=draw(texts_or_none),
                log_dirs=tuple(draw(several_texts)),
                mount_point=draw(texts_or_none),
                status=draw(statuses),
                role=draw(roles),
                latched=draw(booleans),
                fill_bytes_per_second=draw(rates),
                own_hard=own_hard,
            )
        )
    return UsageRecord(
        snapshot_at=NOW + timedelta(milliseconds=draw(milliseconds)),
        volumes=tuple(volumes),
        hard=hard,
        soft=soft,
        cluster_id=draw(texts_or_none),
        instance_id=draw(texts_or_none),
        sequence=draw(sequences),
    )


@pytest.mark.accepts("A22", "A23")
@given(record=publishable())
@bounded(200)
def test_a_record_is_read_as_it_was_written(record: UsageRecord) -> None:
    document = usage_to_document(record)
    assert complaints("usage", document) == []
    assert parse_usage(json.dumps(document).encode()) == record
