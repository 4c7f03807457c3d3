"""The trend of a volume's crests, on disks that behave as disks do."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from kquota_pipeline.forecast.times import Outlook, time_to_limit
from kquota_pipeline.forecast.trend import DAY_HOURS, Series, Trend, trend_of

CAPACITY = 1000.0
HARD = 950.0


def series(
    crest: NDArray[np.float64],
    *,
    held: NDArray[np.float64] | None = None,
    ids: list[str] | None = None,
    hours: NDArray[np.int64] | None = None,
) -> Series:
    return Series(
        hours=np.arange(len(crest)) if hours is None else hours,
        crest_bytes=crest,
        held=np.zeros(len(crest)) if held is None else held,
        capacity_bytes=CAPACITY,
        volume_ids=np.array(ids or ["a"] * len(crest), dtype=object),
    )


def growth(days: int, per_day: float, level: float = 300.0, seed: int = 1) -> NDArray[np.float64]:
    """Steady growth with a day's rhythm and some noise."""
    hours = np.arange(days * DAY_HOURS)
    noise = np.random.default_rng(seed).normal(0, 1, len(hours))
    return np.asarray(level + per_day * hours / DAY_HOURS + 5 * np.sin(hours / 24 * 2 * np.pi) + noise)


def found(one: Series) -> Trend:
    trend = trend_of(one)
    assert trend is not None
    return trend


def test_steady_growth_is_found_and_its_time_to_the_limit_lies_in_the_interval() -> None:
    trend = found(series(growth(20, 10.0)))
    assert trend.slope_bytes_per_day == pytest.approx(10, rel=0.1)
    time = time_to_limit(trend, 500.0, HARD)
    assert time.outlook is Outlook.FILLING
    assert time.early_days is not None
    assert time.days is not None
    assert time.late_days is not None
    assert time.early_days <= 44.5 <= time.late_days
    assert time.days == pytest.approx(44.5, rel=0.1)


@pytest.mark.parametrize("period_hours", [8, 24, 60])
def test_a_saw_tooth_that_always_comes_back_is_not_filling(period_hours: int) -> None:
    hours = np.arange(28 * DAY_HOURS)
    noise = np.random.default_rng(2).normal(0, 1, len(hours))
    crest = 400 + 200 * (hours % period_hours) / period_hours + noise
    time = time_to_limit(trend_of(series(crest)), float(crest[-1]), HARD)
    assert time.days is None or time.days > 60, time
    assert time.outlook in {Outlook.NOT_FILLING, Outlook.PERHAPS}


def test_a_saw_tooth_that_rises_is_filling_by_its_crests() -> None:
    hours = np.arange(28 * DAY_HOURS)
    crest = 300 + 100 * (hours % 24) / 24 + 8 * hours / DAY_HOURS
    assert found(series(crest)).slope_bytes_per_day == pytest.approx(8, rel=0.1)


def test_one_deletion_lowers_the_level_and_leaves_the_trend() -> None:
    crest = growth(24, 10.0)
    crest[14 * DAY_HOURS :] -= 200
    trend = found(series(crest))
    assert trend.slope_bytes_per_day == pytest.approx(10, rel=0.15)
    assert trend.level_bytes == pytest.approx(crest[-1], abs=15)


def test_a_burst_that_is_deleted_again_leaves_the_trend() -> None:
    crest = growth(24, 4.0)
    crest[10 * DAY_HOURS : 11 * DAY_HOURS] += 250
    assert found(series(crest)).slope_bytes_per_day == pytest.approx(4, rel=0.25)


def test_a_gap_in_the_history_leaves_the_trend() -> None:
    crest = growth(24, 10.0)
    keep = np.r_[0 : 8 * DAY_HOURS, 12 * DAY_HOURS : len(crest)]
    trend = found(series(crest[keep], hours=keep.astype(np.int64)))
    assert trend.slope_bytes_per_day == pytest.approx(10, rel=0.15)


def test_a_replaced_volume_starts_anew_and_its_refill_is_no_growth() -> None:
    crest = growth(26, 3.0, level=500)
    crest[10 * DAY_HOURS : 11 * DAY_HOURS] *= np.linspace(0.04, 1, DAY_HOURS)
    ids = ["old"] * (10 * DAY_HOURS) + ["new"] * (16 * DAY_HOURS)
    assert found(series(crest, ids=ids)).slope_bytes_per_day == pytest.approx(3, rel=0.3)


def test_a_pause_does_not_make_a_filling_disk_look_quiet() -> None:
    wanted = growth(24, 20.0)
    paused = slice(12 * DAY_HOURS, 18 * DAY_HOURS)
    crest = wanted.copy()
    crest[paused] = wanted[paused.start]
    crest[paused.stop :] -= wanted[paused.stop] - wanted[paused.start]
    held = np.zeros(len(crest))
    held[paused] = 1.0
    assert found(series(crest, held=held)).slope_bytes_per_day == pytest.approx(20, rel=0.15)
    blind = found(series(crest)).slope_bytes_per_day
    assert blind < 18


def test_two_days_say_nothing_about_a_trend() -> None:
    assert trend_of(series(growth(1, 10.0))) is None
    assert time_to_limit(None, 100.0, HARD).outlook is Outlook.UNKNOWN


def test_a_volume_over_its_limit_is_there_now() -> None:
    time = time_to_limit(None, HARD, HARD)
    assert (time.outlook, time.days) == (Outlook.OVER, 0.0)


def test_the_interval_holds_what_comes_in_about_four_cases_of_five() -> None:
    inside = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        steps = rng.normal(0.2, 1.5, 30 * DAY_HOURS)
        crest = 400 + np.cumsum(steps)
        known, later = crest[: 23 * DAY_HOURS], crest[23 * DAY_HOURS :]
        trend = found(series(known))
        for day in range(7):
            low, high = trend.band_at(len(known) + day * DAY_HOURS + 12)
            inside.append(low <= later[day * DAY_HOURS : (day + 1) * DAY_HOURS].max() <= high)
    assert 0.65 <= np.mean(inside) <= 0.95
