"""A new inflow seen by usage alone: a rise unlike all before, which goes on until its retention begins.

How long that is cannot be seen. Common retentions are known, Kafka's own default of a week first of all, and
those that the rise has already outlived are out of the question.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kquota_pipeline.forecast.history import DAY_HOURS, Floats

# Days, and how common such a retention is among topics that fill disks.
_RETENTION_DAYS = np.array([1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 14.0, 30.0])
_COMMON = np.array([1.0, 1.0, 2.0, 1.0, 6.0, 0.5, 1.5, 1.0])
# The growth of a day is new if it is this many times that of nine in ten days before.
_UNLIKE = 1.3
_SURPRISING = 2.0
# Half a day brings half of it; with this much, it goes on.
_ONGOING = 0.2
_USUAL_RATIO = 0.25
_LEAST_RATIO = 0.02
_MIN_BEFORE_DAYS = 1
_LOOK_BACK_DAYS = 8
# How often such a rise is one that goes on. That of a single day is not known from a burst.
_LIKELY, _LIKELY_BY_SURPRISE, _LEAST_AGE_DAYS = 0.8, 0.5, 1.05


@dataclass(frozen=True, slots=True)
class Newcomer:
    """Bytes per day that are new, the days since they began, and how likely it is that they go on."""

    bytes_per_day: float
    age_days: float
    likely: float


def newcomer_of(hourly: Floats, capacity_bytes: float) -> Newcomer | None:
    """Return the new inflow that goes on at the last hour, None where there is none."""
    days = len(hourly) // DAY_HOURS
    if days < _MIN_BEFORE_DAYS + 2:
        return None
    grown = hourly[DAY_HOURS:] - hourly[:-DAY_HOURS]
    for age in range(1, min(_LOOK_BACK_DAYS, days - 1 - _MIN_BEFORE_DAYS) + 1):
        before = np.abs(grown[: len(grown) - age * DAY_HOURS])
        if len(before) < _MIN_BEFORE_DAYS * DAY_HOURS:
            return None
        usual = float(np.quantile(before, 0.9))
        least = max(_LEAST_RATIO * capacity_bytes, _UNLIKE * usual)
        recent = grown[-1 - (age - 1) * DAY_HOURS :: DAY_HOURS] if age > 1 else grown[-1:]
        if float(recent.min()) < 0.4 * float(grown[-1]) or float(grown[-1]) < least:
            return None
        # The day before this one had no such growth: it is where the rise began.
        began = float(np.clip(grown[-1 - age * DAY_HOURS], 0, None)) / float(grown[-1])
        if began < 0.75:
            if age + began < _LEAST_AGE_DAYS:
                return None
            return _ongoing(hourly, float(grown[-1]), age + began, _LIKELY)
    return None


def newcomer_by_surprise(
    hourly: Floats, surprises: Floats, usual_errors: Floats, capacity_bytes: float
) -> Newcomer | None:
    """Return the same by how much higher crests were than foretold before it began.

    `surprises` and `usual_errors` are [moment, day ahead], in bytes: moment k is k days ago.
    """
    for began in range(min(_LOOK_BACK_DAYS, len(surprises) - 1), 1, -1):
        higher = surprises[began, :began]
        if not np.isfinite(higher).all():
            continue
        steps = np.diff(higher, prepend=0.0)
        rate = float(np.median(steps[1:]))
        least = max(_LEAST_RATIO * capacity_bytes, _SURPRISING * float(usual_errors[began, began - 1]))
        if higher[-1] < least or rate <= 0 or float(steps[1:].min()) < 0.5 * rate or steps[0] < 0.25 * rate:
            continue
        age = began - 1 + min(1.0, float(steps[0]) / rate)
        return _ongoing(hourly, rate, age, _LIKELY_BY_SURPRISE)
    return None


def _ongoing(hourly: Floats, grown: float, age: float, likely: float) -> Newcomer | None:
    half = DAY_HOURS // 2
    lately = float(hourly[-1] - hourly[-1 - half])
    past = [int(np.ceil(age) + k) * DAY_HOURS for k in range(1, 5)]
    before = [hourly[-1 - k] - hourly[-1 - half - k] for k in past if k + half < len(hourly)]
    usually = float(np.median(before)) if before else 0.0
    rate = grown if age >= 1 else grown / max(age, 0.3)
    if lately - usually < _ONGOING * rate:
        return None
    return Newcomer(rate, age, likely)


def rise_to_come(newcomer: Newcomer, capacity_bytes: float, ahead: int) -> Floats:
    """Return the bytes by which days to come will be higher than now, in the mean of common retentions.

    Topics that come to take a large part of a disk are rarer than small ones.
    """
    left = np.maximum(_RETENTION_DAYS - newcomer.age_days, 0.0)
    taken = newcomer.bytes_per_day * _RETENTION_DAYS / capacity_bytes
    weights = np.where(left > 0, _COMMON * np.exp(-taken / _USUAL_RATIO), 0.0)
    if not weights.sum():
        return np.zeros(ahead)
    days = np.arange(1, ahead + 1)
    rises = np.minimum(days[:, None], left[None]) * newcomer.bytes_per_day
    return np.asarray(rises @ weights / weights.sum())
