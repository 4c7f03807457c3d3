"""Usage as the sum of what expires and what flows in, on topics that Kafka keeps by time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquota_pipeline.forecast.history import BOUND_HOURS, DAY_HOURS, Floats, Looks
from kquota_pipeline.forecast.inflow import flow_of, gone_within
from kquota_pipeline.forecast.lifetimes import LIFETIME_HOURS, _about, summed
from kquota_pipeline.forecast.physics import _kept, learned, leaving_to_come
from tests.spark.forecast.made_series import looks, retained

DAYS = 40
CUT = 30 * DAY_HOURS


def rate(seed: int, per_hour: float = 1.0) -> Floats:
    hours = np.arange(DAYS * DAY_HOURS)
    rhythm = 1 + 0.5 * np.sin(hours / 24 * 2 * np.pi) - 0.3 * ((hours // 24) % 7 >= 5)
    return np.asarray(per_hour * rhythm * np.random.default_rng(seed).lognormal(0, 0.1, len(hours)))


def known(whole: Looks) -> Looks:
    return whole.until(int(whole.hours[0]) + CUT - 1)


def foretold(whole: Looks) -> tuple[Floats, Floats]:
    """Return what leaves some day, [hour to come], as foretold at the cut and as it came."""
    part = known(whole)
    learnt = learned(part)
    assert learnt is not None
    came = whole.leaving_bytes.sum(axis=1)[CUT:]
    # Over a month, as forecasts are: the end of the last bucket is part of it.
    return leaving_to_come(learnt, part, CUT - 1, 30)[: len(came)], came


PAST = [summed(flow_of(known(looks({"a": retained(rate(seed), 72)})))) for seed in range(2)]


@pytest.mark.parametrize("keep_days", [0.5, 1, 3, 7])
def test_a_topic_in_its_retention_goes_on_with_its_rhythm(keep_days: float) -> None:
    said, came = foretold(looks({"a": retained(rate(1), int(keep_days * 24))}))
    assert np.abs(said - came).mean() < 0.06 * came.mean()


@pytest.mark.parametrize("keep_days", [3, 5, 7])
@pytest.mark.parametrize("age_days", [2, 3])
def test_the_ramp_of_a_new_topic_ends_where_its_retention_begins(keep_days: int, age_days: int) -> None:
    new = rate(2, 3.0)
    new[: CUT - age_days * DAY_HOURS] = 0
    said, came = foretold(looks({"old": retained(rate(1), 72), "new": retained(new, keep_days * 24)}))
    crest = came.reshape(10, 24).max(axis=1)
    assert crest[-1] > 1.2 * crest[0] or keep_days - age_days <= 1
    assert said.reshape(10, 24).max(axis=1) == pytest.approx(crest, rel=0.1)


@pytest.mark.parametrize("keep_hours", [100, 130, 240, 400])
@pytest.mark.parametrize("age_hours", [24, 54])
def test_a_known_retention_ends_the_ramp_of_a_new_topic_from_its_second_day_on(
    keep_hours: int, age_hours: int
) -> None:
    """Also one that is not common, and that no bucket has shown yet."""
    new = rate(2, 3.0)
    new[: CUT - age_hours] = 0
    whole = looks({"old": retained(rate(1), 72), "new": retained(new, keep_hours)})
    kept = np.where(whole.topic_bytes > 0, [72.0, float(keep_hours)], 0.0)
    said, came = foretold(replace(whole, topic_keep_hours=kept))
    assert said.reshape(10, 24).max(axis=1) == pytest.approx(came.reshape(10, 24).max(axis=1), rel=0.1)


@pytest.mark.parametrize("before", [168.0, 604_800.0])
@pytest.mark.parametrize("age_hours", [30, 54])
def test_a_topic_that_was_empty_until_lately_is_as_new_as_one_that_was_not_there(
    age_hours: int, before: float
) -> None:
    """Topics are made before they are used: a log without records, a few hundred bytes, and perhaps with the
    retention of the broker until its owner sets another one.
    """
    new = rate(2, 3.0)
    new[: CUT - age_hours] = 0
    whole = looks({"old": retained(rate(1), 72), "new": retained(new, 168)})
    empty = np.where(whole.topic_bytes[:, 1] == 0, 1e-3, 0.0)
    whole.topic_bytes[:, 1] += empty
    whole.leaving_bytes[:, 5] += empty
    kept = np.full(whole.topic_bytes.shape, [72.0, 168.0])
    kept[: CUT - age_hours, 1] = before
    whole = replace(whole, topic_keep_hours=kept)
    assert not known(whole).kept_longer().any()
    assert flow_of(known(whole)).is_new == (False, True)
    said, came = foretold(whole)
    assert said.reshape(10, 24).max(axis=1) == pytest.approx(came.reshape(10, 24).max(axis=1), rel=0.1)


def test_a_topic_that_begins_with_little_is_new_from_its_first_byte_on() -> None:
    new = rate(2, 3.0)
    new[: CUT - 30] = 0
    new[CUT - 30 : CUT - 20] *= 1e-4
    whole = known(looks({"old": retained(rate(1), 72), "new": retained(new, 168)}))
    assert whole.filled()[:, 1].tolist() == [hour >= CUT - 30 for hour in range(CUT)]
    assert flow_of(whole).began == (0, CUT - 30 - 1)


def test_each_byte_of_a_topic_with_a_known_retention_has_one_lifetime() -> None:
    new = rate(2, 3.0)
    new[: CUT - 30] = 0
    whole = known(looks({"old": retained(rate(1), 72), "new": retained(new, 168)}))
    learnt = learned(replace(whole, topic_keep_hours=np.full(whole.topic_bytes.shape, [72.0, 168.0])))
    assert learnt is not None
    assert learnt.flow.topics == (None, 1)
    assert learnt.shares[1].sum() == pytest.approx(1)
    assert LIFETIME_HOURS[np.argmax(learnt.shares, axis=1)].tolist() == [72.0, 168.0]


@pytest.mark.parametrize("hours", [0.2, 1, 5, 100, 168, 5000])
def test_lifetimes_are_at_or_soon_after_the_retention(hours: float) -> None:
    found = _about(hours)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    likeliest = LIFETIME_HOURS[np.argmax(found)]
    assert likeliest >= 0.97 * min(hours, LIFETIME_HOURS[-1])
    assert found @ LIFETIME_HOURS <= max(1.2 * hours + 10, 1.5)


def test_where_looks_name_no_topics_what_flows_in_beyond_the_usual_is_a_new_one() -> None:
    new = rate(2, 3.0)
    new[: CUT - 2 * DAY_HOURS] = 0
    whole = looks({"old": retained(rate(1), 24), "new": retained(new, 168)})
    nothing = np.zeros((len(whole.hours), 0))
    unnamed = replace(whole, topics=(), topic_bytes=nothing, topic_soon_bytes=nothing)
    assert flow_of(known(unnamed)).is_new == (False, True)
    said, came = foretold(unnamed)
    assert said.reshape(10, 24).max(axis=1) == pytest.approx(came.reshape(10, 24).max(axis=1), rel=0.15)


def test_a_new_topic_that_is_compacted_is_no_part_of_what_leaves() -> None:
    table = np.maximum(np.arange(DAYS * DAY_HOURS, dtype=float) - CUT + 60, 0) * 3
    never = (table, np.zeros((len(table), len(BOUND_HOURS) + 1)))
    said, came = foretold(looks({"old": retained(rate(1), 72), "table": never}, never=table))
    assert np.abs(said - came).mean() < 0.06 * came.mean()


def test_what_flowed_in_is_measured_through_deletions_and_gaps() -> None:
    whole = looks({"a": retained(rate(1), 24)})
    flow = flow_of(whole)
    assert flow.inflow_bytes[0, 30:].sum() == pytest.approx(rate(1)[30:].sum(), rel=0.01)
    kept = np.delete(np.arange(len(whole.hours)), np.r_[200:206, 500:503])
    gaps = replace(
        whole,
        hours=whole.hours[kept],
        leaving_bytes=whole.leaving_bytes[kept],
        never_bytes=whole.never_bytes[kept],
        topic_bytes=whole.topic_bytes[kept],
        topic_soon_bytes=whole.topic_soon_bytes[kept],
    )
    assert flow_of(gaps).inflow_bytes.sum() == pytest.approx(flow.inflow_bytes.sum(), rel=0.02)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=8, max_size=8), st.integers(0, 1))
def test_what_is_there_leaves_by_the_dates_of_the_look(leaving: list[float], seed: int) -> None:
    """With any lifetimes: at the end of each bucket its bytes are gone, and never come back."""
    draw = np.random.default_rng(seed)
    past = PAST[seed]
    shares = draw.dirichlet(np.ones(len(LIFETIME_HOURS)), len(past))
    bytes_ = np.array(leaving)
    ahead = np.arange(1.0, 721.0)
    kept = _kept(shares, past, CUT - 1, bytes_, ahead)
    left = bytes_.sum() - np.cumsum(bytes_)
    for number, bound in enumerate(BOUND_HOURS[1:-1], start=1):
        assert kept[int(bound) - 1] == pytest.approx(left[number], abs=1e-3)
    assert (np.diff(kept) <= 1e-6).all()
    assert kept[-1] >= -1e-6


def test_between_two_bounds_bytes_leave_by_and_by() -> None:
    leaving = np.array([[0, 10, 50, 0, 0, 0, 0, 0.0]])
    found = [float(gone_within(leaving, np.array([hours]))[0]) for hours in (0.0, 1.0, 3.5, 6.0, 100.0)]
    assert found == pytest.approx([0, 10, 35, 60, 60])
