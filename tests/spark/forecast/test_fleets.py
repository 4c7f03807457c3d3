"""The made-up fleets that forecasts are tuned and judged on."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from bench.pipeline.fleets import changes, rates, segments
from bench.pipeline.fleets.blocks import Topic, rhythm
from kquota.core.expiry import DAY_MS, expiry_of
from kquota_pipeline.forecast.history import BOUND_HOURS

TICKS = 30 * segments.DAY


@pytest.mark.parametrize(
    ("keep_ms", "keep_bytes"), [(3 * DAY_MS, None), (None, 4e9), (7 * DAY_MS, 9e9), (DAY_MS // 4, None)]
)
@pytest.mark.parametrize("roll_bytes", [2e8, 1e15])
def test_looks_at_made_up_partitions_are_those_of_the_agents(
    keep_ms: int | None, keep_bytes: float | None, roll_bytes: float
) -> None:
    rate = np.random.default_rng(3).lognormal(0, 0.5, TICKS) * 1e7
    made = segments.partition(
        "t", rate, keep_ms=keep_ms, keep_bytes=keep_bytes, roll_ms=2 * DAY_MS, roll_bytes=roll_bytes
    )
    for tick in range(7, TICKS, 397):
        leaving, size = made.leaving(np.array([tick]))
        found = expiry_of(made.on_disk(tick), made.rules, segments.BROKER, tick * segments.TICK_MS)
        assert leaving[0] == pytest.approx(np.array(found.leaving_bytes), abs=1000)
        assert size[0] == pytest.approx(found.total_bytes, abs=1000)


HOURS = 30 * 24


def blocks(keep_hours: np.ndarray, late_hours: float = 0.0) -> Topic:
    rate = np.random.default_rng(4).gamma(2, 1, HOURS)
    late = np.full(HOURS, late_hours)
    return Topic(rate, keep_hours, late, np.ones(HOURS), roll_bytes=30.0, roll_hours=24.0)


@pytest.mark.parametrize("late_hours", [0.0, 12.0])
def test_bytes_of_made_up_blocks_are_gone_when_their_looks_say(late_hours: float) -> None:
    topic = blocks(np.full(HOURS, 100.0), late_hours)
    sizes, leaving = topic.contents()
    came = np.concatenate([[0.0], np.cumsum(topic.rate)])
    within = np.cumsum(leaving, axis=1)
    assert within[:, -1] == pytest.approx(sizes)
    for number, bound in enumerate(BOUND_HOURS[1:5].astype(int), start=1):
        later = np.arange(200, HOURS - bound)
        left = sizes[later] - within[later, number]
        flowed = came[later + bound + 1] - came[later + 1]
        assert (sizes[later + bound] <= left + flowed + 1e-9).all()
        assert (sizes[later + bound] >= left - 1e-9).all()


def test_a_retention_that_is_halved_frees_half_of_a_made_up_topic_at_once() -> None:
    clock = np.arange(HOURS)
    sizes, _ = blocks(np.where(clock < 400, 200.0, 100.0)).contents()
    assert sizes[400] == pytest.approx(sizes[399] / 2, rel=0.15)


def test_changes_after_the_forecast_are_no_part_of_what_can_be_foreseen() -> None:
    for volume in changes.fleet(5, 1):
        until = volume.series.hours <= volume.cut
        assert volume.calm is not None
        assert volume.usual is not None
        for other in (volume.calm, volume.usual):
            assert other.crest_bytes[until] == pytest.approx(volume.known.crest_bytes)
        assert (volume.usual.crest_bytes != volume.calm.crest_bytes).any()


@pytest.mark.parametrize("made", [rates, changes])
def test_a_seed_gives_the_same_volumes_and_what_comes_is_not_known(made: ModuleType) -> None:
    one, same = (made.fleet(5, 1) for _ in range(2))
    assert [volume.family for volume in one] == list(made.FAMILIES)
    for left, right in zip(one, same, strict=True):
        assert (left.series.crest_bytes == right.series.crest_bytes).all()
        assert left.known.hours[-1] == left.cut
        assert np.isfinite(left.crests_to_come(30)).all()
        if left.known_looks is not None:
            total = left.known_looks.leaving_bytes.sum(axis=1) + left.known_looks.never_bytes
            assert total == pytest.approx(left.known_looks.topic_bytes.sum(axis=1), rel=1e-6)
            kept = left.known_looks.topic_keep_hours
            assert kept is not None
            assert kept.shape == left.known_looks.topic_bytes.shape
            assert np.isfinite(kept).all()


def test_traffic_that_is_to_be_expected_has_the_rhythm_and_no_chance() -> None:
    cut, weeks = 20 * 24, 10
    of_chance, of_rhythm = [], []
    for seed in range(20):
        real = rhythm(np.random.default_rng(seed), cut + weeks * 168)
        usual = rhythm(np.random.default_rng(seed), cut + weeks * 168, cut)
        assert usual[:cut] == pytest.approx(real[:cut])
        # The difference of the last known day is forgotten within days.
        last = usual[-2 * 168 :].reshape(2, 168)
        assert last[0] == pytest.approx(last[1], rel=1e-3)
        of_chance.append(np.log(real[cut:] / usual[cut:]))
        of_rhythm.append(np.std(np.log(usual[-168:])))
    assert abs(np.mean(of_chance)) < 0.02
    assert np.std(of_chance) > 0.1
    assert np.mean(of_rhythm) > 0.2
