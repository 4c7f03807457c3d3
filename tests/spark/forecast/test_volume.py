"""The forecast of one volume, on disks that behave as disks do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.pipeline.fleets.cluster_logs import DAYS, HOUR_STEPS, Log, Rules
from kquota_pipeline.forecast.conformal import USUAL, interval
from kquota_pipeline.forecast.history import DAY_HOURS, Looks, Series
from kquota_pipeline.forecast.newcomer import newcomer_of
from kquota_pipeline.forecast.probabilities import Outlook, outlook, reached_by_day
from kquota_pipeline.forecast.volume import Basis, VolumeForecast, volume_forecast
from tests.spark.forecast.made_series import CAPACITY, growth, looks, retained, series

HARD = 950.0


def found(one: Series, seen: Looks | None = None) -> VolumeForecast:
    forecast = volume_forecast(one, seen)
    assert forecast is not None
    return forecast


def outlook_of(one: Series, limit: float = HARD) -> Outlook:
    forecast = found(one)
    reached = reached_by_day(forecast.crest_bytes, forecast.usual_error_bytes, USUAL, limit)
    return outlook(reached, float(one.crest_bytes[-1]), limit)


def test_steady_growth_goes_on_and_its_crest_lies_in_the_interval() -> None:
    forecast = found(series(growth(20, 10.0)))
    low, high = interval(forecast.crest_bytes, forecast.usual_error_bytes, USUAL)
    came = 300 + 10.0 * (20 + np.arange(1, 15)) + 5
    assert forecast.crest_bytes[:14] == pytest.approx(came, rel=0.06)
    assert ((low[:14] <= came) & (came <= high[:14])).mean() > 0.6
    assert forecast.basis is Basis.USAGE


def test_with_few_days_a_forecast_may_be_more_wrong() -> None:
    crest = growth(20, 10.0)
    errors = [found(series(crest[-days * DAY_HOURS :])).usual_error_bytes[0] for days in (2, 4, 20)]
    assert errors[0] > 2.4 * errors[1]
    assert errors[1] > 2.4 * errors[2]


@pytest.mark.parametrize("period_hours", [8, 24, 60, 168])
@pytest.mark.parametrize("days", [11, 28])
def test_a_saw_tooth_that_always_comes_back_is_not_filling(period_hours: int, days: int) -> None:
    hours = np.arange(days * DAY_HOURS)
    noise = np.random.default_rng(2).normal(0, 1, len(hours))
    crest = 400 + 200 * ((hours + 20) % period_hours) / period_hours + noise
    assert outlook_of(series(crest)) in {Outlook.NOT_FILLING, Outlook.PERHAPS}


def test_a_saw_tooth_that_rises_is_filling_by_its_crests() -> None:
    hours = np.arange(40 * DAY_HOURS)
    crest = 300 + 100 * (hours % 24) / 24 + 11 * hours / DAY_HOURS
    assert outlook_of(series(crest)) is Outlook.FILLING


def test_one_deletion_is_no_trend() -> None:
    crest = growth(24, 0.0, level=600)
    crest[20 * DAY_HOURS :] -= 200
    assert found(series(crest)).crest_bytes[:7] == pytest.approx(400, abs=60)


def test_a_pause_does_not_make_a_filling_disk_look_quiet() -> None:
    wanted = growth(24, 20.0)
    paused = slice(12 * DAY_HOURS, 18 * DAY_HOURS)
    crest = wanted.copy()
    crest[paused] = wanted[paused.start]
    crest[paused.stop :] -= wanted[paused.stop] - wanted[paused.start]
    held = np.zeros(len(crest))
    held[paused] = 1.0
    risen = found(series(crest, held=held)).crest_bytes[6] - crest[-1]
    assert risen == pytest.approx(7 * 20, rel=0.3)
    assert found(series(crest)).crest_bytes[6] - crest[-1] < risen


def test_a_new_inflow_is_foreseen_by_usage_alone_though_not_its_end() -> None:
    crest = growth(20, 0.0)
    begun = np.maximum(np.arange(len(crest)) - 18 * DAY_HOURS, 0)
    newcomer = newcomer_of(crest + 2.5 * begun, CAPACITY)
    assert newcomer is not None
    assert newcomer.bytes_per_day == pytest.approx(60, rel=0.15)
    assert newcomer.age_days == pytest.approx(2, abs=0.5)
    assert newcomer_of(crest, CAPACITY) is None
    over = crest + 2.5 * np.minimum(begun, 24)
    assert newcomer_of(over, CAPACITY) is None, "it has ended"
    forecast = found(series(crest + 2.5 * begun))
    assert forecast.crest_bytes[4] > crest[-1] + 2.5 * 48 + 80
    assert forecast.weights["newcomer"] > 0.5
    assert newcomer.likely < 1


def test_a_rise_of_a_single_day_is_no_new_inflow_as_it_may_be_a_burst() -> None:
    crest = growth(20, 0.0)
    hours = np.arange(len(crest))
    one_day = np.clip(hours - 19 * DAY_HOURS, 0, DAY_HOURS)
    assert newcomer_of(crest + 2.5 * one_day, CAPACITY) is None
    assert newcomer_of(crest + 2.5 * np.maximum(hours - 18.5 * DAY_HOURS, 0), CAPACITY) is not None


def test_expiry_foresees_the_end_of_a_new_topics_ramp() -> None:
    hours = np.arange(30 * DAY_HOURS)
    rate = np.random.default_rng(1).lognormal(0, 0.1, len(hours))
    new = np.where(hours >= 18 * DAY_HOURS, 4.0, 0.0) * rate
    topics = {"old": retained(rate, 72), "new": retained(new, 72)}
    seen, used = looks(topics), 50 + sum(size for size, _ in topics.values())
    cut = 20 * DAY_HOURS
    whole = series(used)
    forecast = found(whole.until(whole.hours[cut - 1]), seen.until(whole.hours[cut - 1]))
    came = used[cut:].reshape(-1, DAY_HOURS).max(axis=1)
    assert forecast.basis is Basis.EXPIRY
    assert forecast.crest_bytes[:10] == pytest.approx(came[:10], rel=0.1)


def test_less_than_two_days_say_nothing_and_two_are_enough() -> None:
    assert volume_forecast(series(growth(1, 10.0)), None) is None
    assert found(series(growth(2, 10.0))).basis is Basis.YOUNG


def test_few_samples_a_day_are_enough_and_a_volume_without_capacity_has_no_forecast() -> None:
    whole = growth(20, 10.0)
    rare = np.arange(5, len(whole), 6)
    forecast = found(series(whole[rare], hours=rare))
    assert forecast.days == 20
    assert forecast.crest_bytes[6] == pytest.approx(300 + 10 * 27, rel=0.07)
    empty = replace(series(whole), capacity_bytes=0.0)
    assert volume_forecast(empty, None) is None


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(30, 500),
    st.lists(st.tuples(st.floats(0, 1), st.integers(1, 90)), max_size=4),
    st.booleans(),
    st.floats(0.2, 1.0),
)
def test_gaps_replacements_and_missing_looks_always_leave_a_forecast(
    seed: int, hours: int, gaps: list[tuple[float, int]], replaced: bool, looked: float
) -> None:
    draw = np.random.default_rng(seed)
    rate = draw.lognormal(0, 1, hours) * (draw.random(hours) < 0.9)
    topics = {"a": retained(rate, int(draw.integers(1, 300))), "b": retained(rate[::-1].copy(), 24)}
    seen = looks(topics)
    used = sum(size for size, _ in topics.values()) + draw.uniform(0, 100)
    keep = np.ones(hours, dtype=bool)
    for at, length in gaps:
        keep[int(at * hours) : int(at * hours) + length] = False
    keep[[0, -1]] = True
    at = np.flatnonzero(keep)
    ids = ["old" if replaced and hour < hours // 2 else "new" for hour in at]
    rows = np.flatnonzero(keep & (draw.random(hours) < looked))
    seen = Looks(
        seen.hours[rows], seen.leaving_bytes[rows], seen.never_bytes[rows], seen.topics,
        seen.topic_bytes[rows], seen.topic_soon_bytes[rows],
    )  # fmt: skip
    forecast = volume_forecast(series(used[at], ids=ids, hours=at), seen)
    if forecast is not None:
        assert np.isfinite(forecast.crest_bytes).all()
        assert (forecast.crest_bytes >= 0).all()
        assert (forecast.usual_error_bytes > 0).all()


@pytest.mark.parametrize("age_hours", [4, 40])
@pytest.mark.parametrize(("before", "after"), [(72, 144), (48, 168), (168, 60), (96, 24)])
def test_a_retention_that_was_changed_lately_is_followed_to_its_end(
    before: int, after: int, age_hours: int
) -> None:
    """Levels and errors of the days before say nothing about the days to come."""
    hours = np.arange(DAYS * DAY_HOURS)
    cut = (DAYS - 10) * DAY_HOURS
    changed = cut - age_hours
    kept = np.where(hours < changed, before, after).astype(float)
    rate = 1 + 0.4 * np.sin(hours / 24 * 2 * np.pi) + np.random.default_rng(3).normal(0, 0.05, len(hours))
    written = np.concatenate([[0.0], np.cumsum(np.repeat(rate / HOUR_STEPS, HOUR_STEPS))])
    rules = Rules(before * 60, roll_minutes=24 * 60, roll_bytes=4.0, kept_later=((changed * 60, after * 60),))
    log, looked = Log(written, rules), (hours + 1) * HOUR_STEPS
    sizes, leaving = log.sizes(looked), np.diff(log.leaving(looked), axis=1, prepend=0.0)
    seen = slice(cut - 30 * DAY_HOURS, cut)
    days = looks({"a": (sizes[seen], leaving[seen])})
    crest = np.maximum(sizes, np.concatenate([sizes[:1], sizes[:-1]])) + 100
    forecast = found(series(crest[seen]), replace(days, topic_keep_hours=kept[seen, None]))
    came = crest[cut:].reshape(10, DAY_HOURS).max(axis=1)
    assert forecast.crest_bytes[1:10] == pytest.approx(came[1:], rel=0.08)
    assert max(forecast.weights, key=lambda name: forecast.weights[name]) == "expiry"
