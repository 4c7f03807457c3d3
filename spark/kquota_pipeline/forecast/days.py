"""The hours of a volume on a regular clock, and the crest of each day until now."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kquota_pipeline.forecast.history import DAY_HOURS, Floats, Ints, Series

MAX_DAYS = 70
"""Older days belong to other times."""
_FULL_HOURS = DAY_HOURS // 2
# A new volume is filled by replication: hours that rise by this many usual changes.
_STEEP = 4
# A jump is larger than this share of the capacity, and than this many usual hourly changes.
_JUMP_CAPACITY_SHARE = 0.03
_JUMP_USUAL_CHANGES = 8.0
_ALIKE = 2.0
_AS_RISEN = 1.3
_TOOTH_HOURS = 10 * DAY_HOURS


@dataclass(frozen=True, slots=True)
class Days:
    """The volume that is there now, hour by hour until now, and day by day.

    `crest_bytes` is [hour], gaps filled by straight lines; `day_bytes` is [day], the crest of each day, whose
    last hour is the hour of now; NaN where most of a day is missing (the last one always counts). `end_hours`
    are the epoch hours at which these days end. The clock goes slower while producers are slowed, and stands
    still while they are paused: what they were denied is no quiet. The hours before a jump that stands
    alone are moved to the level after it; `moved_bytes` is by how much at the end of each day.
    """

    crest_bytes: Floats
    day_bytes: Floats
    end_hours: Ints
    moved_bytes: Floats
    since_hour: int


def days_of(series: Series) -> Days:
    """Return the hours and days of the volume that is there now."""
    start = start_of_volume(series)
    real = series.hours[start:]
    crest = series.crest_bytes[start:]
    steps = np.diff(real, prepend=real[:1]).astype(float)
    # The time between two hours passes as the later one allows.
    clock = np.cumsum(steps * (1 - np.clip(series.held[start:], 0.0, 1.0)))
    back = np.round(clock[-1] - clock).astype(np.int64)
    seen = back < MAX_DAYS * DAY_HOURS
    back, crest = back[seen], crest[seen]
    length = int(back[0]) + 1
    hourly = np.full(length, -np.inf)
    np.maximum.at(hourly, length - 1 - back, crest)
    known = np.flatnonzero(np.isfinite(hourly))
    filled = np.interp(np.arange(length), known, hourly[known])
    moved = moved_by_jumps(filled, series.capacity_bytes)
    filled = filled + moved
    crests = _day_crests(hourly + moved)
    ends = np.arange(len(crests) - 1, -1, -1) * DAY_HOURS
    # Of hours at which the clock stood still, the last one ends the day.
    place = np.searchsorted(-back, -ends, "right") - 1
    shifts = moved[::-1][::DAY_HOURS][: len(crests)][::-1]
    return Days(filled, crests, real[seen][np.maximum(place, 0)], shifts, int(real[0]))


def _day_crests(hourly: Floats) -> Floats:
    """Return the crest of each day back from the last hour; NaN with less than half of the usual hours."""
    count = max(1, (len(hourly) + _FULL_HOURS) // DAY_HOURS)
    padded = np.full(count * DAY_HOURS, -np.inf)
    part = hourly[-len(padded) :]
    padded[len(padded) - len(part) :] = part
    blocks = padded.reshape(count, DAY_HOURS)
    known = np.isfinite(blocks).sum(axis=1)
    enough = known >= max(1.0, float(np.median(known[known > 0])) / 2)
    enough[-1] = True
    return np.where(enough, blocks.max(axis=1), np.nan)


def moved_by_jumps(hourly: Floats, capacity_bytes: float) -> Floats:
    """Return by how much each hour is moved: a topic that was deleted, or partitions that were moved, are no
    growth.

    A drop may be a tooth: of a saw, if one like it has been before, or if the volume had risen as much.
    """
    moved = np.zeros(len(hourly))
    if len(hourly) < 2 * DAY_HOURS:
        return moved
    changes = np.diff(hourly)
    unexpected = changes - np.median(changes)
    usual = float(np.median(np.abs(unexpected))) * 1.4826
    large = np.abs(unexpected) > max(_JUMP_CAPACITY_SHARE * capacity_bytes, _JUMP_USUAL_CHANGES * usual)
    jumps = np.flatnonzero(large)
    for number, jump in enumerate(jumps):
        size = changes[jump]
        others = np.delete(changes[jumps], number)
        alike = int(((others * size > 0) & (np.abs(others) > abs(size) / _ALIKE)).sum())
        risen = hourly[jump] - hourly[max(0, jump - _TOOTH_HOURS) : jump + 1].min()
        if alike or (size < 0 and -size < _AS_RISEN * risen):
            continue
        moved[: jump + 1] += size
    return moved


def start_of_volume(series: Series) -> int:
    """Return the index at which the volume that is there now begins, filled again where it was replaced."""
    ids: NDArray[np.object_] = series.volume_ids
    other = np.flatnonzero(ids != ids[-1])
    if not len(other):
        return 0
    start = int(other[-1]) + 1
    return min(start + _refill_hours(series.crest_bytes[start:]), len(ids) - 1)


def _refill_hours(crest: Floats) -> int:
    changes = np.diff(crest)
    if len(changes) < DAY_HOURS:
        return 0
    usual = float(np.median(np.abs(changes[_FULL_HOURS:])))
    steep: Ints = np.flatnonzero(changes[: 3 * DAY_HOURS] > _STEEP * max(usual, 1.0))
    return int(steep[-1]) + 2 if len(steep) else 0
