"""Hours and days of the volume that is there now."""

from __future__ import annotations

import numpy as np
import pytest

from kquota_pipeline.forecast.days import days_of
from kquota_pipeline.forecast.history import DAY_HOURS
from tests.spark.forecast.made_series import FIRST_HOUR, growth, series


def test_a_day_ends_at_the_last_hour_and_has_the_highest_of_its_hours() -> None:
    crest = np.arange(60.0)
    found = days_of(series(crest))
    assert found.day_bytes[-2:].tolist() == [35.0, 59.0]
    assert found.end_hours[-2:].tolist() == [FIRST_HOUR + 35, FIRST_HOUR + 59]


def test_a_gap_is_no_day_and_its_hours_are_a_straight_line() -> None:
    crest = np.arange(240.0)
    keep = np.r_[0:72, 120:240].astype(np.int64)
    found = days_of(series(crest[keep], hours=keep))
    assert np.isnan(found.day_bytes[[3, 4]]).all()
    assert np.isfinite(np.delete(found.day_bytes, [3, 4])).all()
    assert found.crest_bytes.tolist() == crest.tolist()


def test_a_replaced_volume_begins_with_the_end_of_its_refill() -> None:
    crest = growth(26, 3.0, level=500)
    crest[10 * DAY_HOURS : 11 * DAY_HOURS] *= np.linspace(0.04, 1, DAY_HOURS)
    ids = ["old"] * (10 * DAY_HOURS) + ["new"] * (16 * DAY_HOURS)
    found = days_of(series(crest, ids=ids))
    assert len(found.day_bytes) == 15
    assert found.since_hour >= FIRST_HOUR + 11 * DAY_HOURS - 2
    assert found.crest_bytes.min() > 480


def test_the_clock_stands_still_while_producers_are_paused() -> None:
    crest = np.minimum(np.arange(480.0), 240) + np.maximum(np.arange(480.0) - 384, 0)
    held = np.zeros(480)
    held[241:385] = 1.0
    found = days_of(series(crest, held=held))
    assert len(found.day_bytes) == 14
    assert np.diff(found.day_bytes[1:]) == pytest.approx(24.0, abs=1)
