"""The trend of one volume, robust to what happens to disks. Pure: arrays in, figures out.

A disk's content rises and falls with retention, so a line through all samples has little meaning. The disk is
filled by the crests of its saw-teeth. Hence: whole days (or whole teeth, where they are longer) become one
crest each, and the median of the slopes between all pairs of crests (Theil and Sen) is the trend: up to 29 %
of the crests may be outliers. Before that, changes that are no growth are removed:

- a replaced volume starts a new series, and the hours in which it was filled again are left out;
- a jump that stands alone (a topic deleted, a partition moved) shifts what came before it to the new level;
- producers that were held back would have sent more: their time goes by their factor, and not at all in
PAUSE.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DAY_HOURS = 24
# Fewer crests than these prove nothing about a trend.
MIN_CRESTS = 4
# Crests of several days are fewer: with less than these, days are the better basis.
_MIN_LONG_CRESTS = 7
# Older crests than these belong to other times.
MAX_CRESTS = 28
# Lines are drawn through this many of the last crests, and rise by this share of the median slope: a volume
# that has risen goes on rising, but rarely by as much.
_LINES = ((MAX_CRESTS, 1.0), (MAX_CRESTS, 0.5), (14, 0.5), (MAX_CRESTS, 0.0))
# They are tried at the moments of the last three weeks, and a week ahead.
_LOOKS_BACK = 21
_LOOK_AHEAD_CRESTS = 7
TRIED_DAYS = 7.0
# The last crest is of the day that ends now: its middle is half a day ago.
_LAST_CREST_DAYS = 0.5
# A jump is larger than this share of the capacity and than this many usual hourly changes.
_JUMP_CAPACITY_SHARE = 0.03
_JUMP_USUAL_CHANGES = 8.0
# Jumps of one direction that are alike within this ratio belong to a saw-tooth, from three on.
_ALIKE = 2.0
_TEETH = 3
# The interval: one in ten ends below it, one in ten above.
INTERVAL = (0.1, 0.9)


@dataclass(frozen=True, slots=True)
class Series:
    """The hours of one volume, in order: epoch hours, crests (bytes), the share of their rate that producers
    were denied (0 to 1), the capacity (bytes), and the id of the volume that was there.
    """

    hours: NDArray[np.int64]
    crest_bytes: Floats
    held: Floats
    capacity_bytes: float
    volume_ids: NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class Trend:
    """Crests now and to come: the level at `hour`, bytes per day, and how far off such a line would have been
    (bytes, times `reach` of the days ahead).
    """

    hour: float
    level_bytes: float
    slope_bytes_per_day: float
    spread_low_bytes: float
    spread_high_bytes: float
    crests: int

    def crest_at(self, hour: float) -> float:
        """Return the expected crest, in bytes, at an epoch hour."""
        return self.level_bytes + self.slope_bytes_per_day * (hour - self.hour) / DAY_HOURS

    def band_at(self, hour: float) -> tuple[float, float]:
        """Return the interval of the crest, in bytes, at an epoch hour."""
        middle, far = self.crest_at(hour), float(reach((hour - self.hour) / DAY_HOURS))
        return middle + self.spread_low_bytes * far, middle + self.spread_high_bytes * far


def reach(days: Floats | float) -> Floats:
    """Return how much larger errors are this many days from now than those of a day's crest from the last
    one.

    They grow with the root of the time, as sums of days do. Beyond the tested horizon they grow with the
    time itself: a wrong slope goes on being wrong.
    """
    ahead = np.maximum(days, 0.0) + _LAST_CREST_DAYS
    return np.asarray(np.sqrt(np.minimum(ahead, TRIED_DAYS)) * np.maximum(1.0, ahead / TRIED_DAYS))


def trend_of(series: Series) -> Trend | None:
    """Return the trend of the crests, or None if there are too few."""
    since = _start_of_volume(series.volume_ids)
    hours = series.hours[since:]
    if len(hours) < MIN_CRESTS * DAY_HOURS // 2:
        return None
    crest = series.crest_bytes[since:].astype(float)
    if since:
        skip = _refill_end(crest)
        hours, crest = hours[skip:], crest[skip:]
        since += skip
    changes = np.diff(crest)
    jumps = _jumps(changes, np.diff(hours), series.capacity_bytes)
    lone, teeth = _lone(changes, jumps)
    level = crest.copy()
    for index in lone:
        level[: index + 1] += changes[index]
    open_hours = _open_hours(hours, series.held[since:])
    block_hours = _block_hours(hours, teeth)
    at, crests = _crests(open_hours, level, block_hours)
    if len(crests) < _MIN_LONG_CRESTS and block_hours > DAY_HOURS:
        at, crests = _crests(open_hours, level, DAY_HOURS)
    if len(crests) < MIN_CRESTS:
        return None
    slope, spread = _weighed_slope(at, crests)
    return Trend(
        hour=float(hours[-1]),
        level_bytes=float(crests[-1] + slope * (open_hours[-1] - at[-1])),
        slope_bytes_per_day=slope * DAY_HOURS,
        spread_low_bytes=spread[0],
        spread_high_bytes=spread[1],
        crests=len(crests),
    )


def _start_of_volume(volume_ids: NDArray[np.object_]) -> int:
    """Return where the volume that is there now begins."""
    other = np.flatnonzero(volume_ids != volume_ids[-1])
    return int(other[-1]) + 1 if len(other) else 0


def _refill_end(crest: Floats) -> int:
    """Return where a new volume has been filled by replication: where its steep rise is over."""
    changes = np.diff(crest)
    if len(changes) < DAY_HOURS:
        return 0
    usual = np.median(np.abs(changes[DAY_HOURS // 2 :]))
    steep = np.flatnonzero(changes[: 3 * DAY_HOURS] > 4 * max(usual, 1.0))
    return int(steep[-1]) + 2 if len(steep) else 0


def _jumps(changes: Floats, hours: NDArray[np.int64], capacity_bytes: float) -> NDArray[np.int64]:
    """Return where more changed than the usual growth of this many hours explains."""
    unexpected = changes - np.median(changes / hours) * hours
    usual = float(np.median(np.abs(unexpected))) * 1.4826
    least = max(_JUMP_CAPACITY_SHARE * capacity_bytes, _JUMP_USUAL_CHANGES * usual)
    return np.flatnonzero(np.abs(unexpected) > least)


def _lone(changes: Floats, jumps: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """Part the jumps in those that stand alone, and drops that come again: the teeth of a saw."""
    lone: list[int] = []
    teeth: list[int] = []
    for index in jumps:
        alike = [
            other for other in jumps
            if changes[other] * changes[index] > 0
            and 1 / _ALIKE < changes[other] / changes[index] < _ALIKE
        ]  # fmt: skip
        is_tooth = changes[index] < 0 and len(alike) >= _TEETH
        (teeth if is_tooth else lone).append(int(index))
    return lone, teeth


def _open_hours(hours: NDArray[np.int64], held: Floats) -> Floats:
    """Return hours that go slower while producers are slowed, and stand still while they are paused."""
    steps = np.diff(hours, prepend=hours[0]).astype(float)
    return np.asarray(np.cumsum(steps * (1 - held)))


def _block_hours(hours: NDArray[np.int64], teeth: list[int]) -> int:
    """Return how long a block must be so that each holds a crest: a day, or the usual distance of teeth."""
    if len(teeth) < _TEETH:
        return DAY_HOURS
    distance = float(np.median(np.diff(hours[np.array(teeth)])))
    return max(DAY_HOURS, round(distance / DAY_HOURS) * DAY_HOURS)


def _crests(open_hours: Floats, level: Floats, block_hours: int) -> tuple[Floats, Floats]:
    """Return time and height of the highest point of each block, from now back, if half full."""
    back = np.floor((open_hours[-1] - open_hours) / block_hours).astype(int)
    at, crests = [], []
    for block in range(min(int(back.max()), MAX_CRESTS - 1), -1, -1):
        inside = np.flatnonzero(back == block)
        if len(inside) < block_hours // 2:
            continue
        at.append(float(open_hours[inside].mean()))
        crests.append(float(level[inside].max()))
    return np.array(at), np.array(crests)


def _weighed_slope(at: Floats, crests: Floats) -> tuple[float, tuple[float, float]]:
    """Return bytes per hour from the last crest on, and the errors (low, high) of a day's crest.

    The slope is the mean of those of _LINES, each weighed by the square of how wrong lines through the last
    crest with it would have been at the moments of the last weeks. How wrong the mean would have been then is
    the interval now, without more assumptions: the quantiles of errors that were held back.
    """
    now = len(crests)
    moments = range(max(MIN_CRESTS, now - _LOOKS_BACK), now)
    slopes = np.array([_slopes(at, crests, moment) for moment in (*moments, now)])
    if len(moments) < MIN_CRESTS:
        slope = float(slopes[-1, 0])
        return slope, _scatter(at, crests, slope)
    errors, days = _past_errors(at, crests, slopes, moments)
    sizes = np.abs(errors).mean(axis=1)
    weights = 1 / np.maximum(sizes, sizes.max() * 1e-6 + 1e-300) ** 2
    weights /= weights.sum()
    low, high = np.quantile(weights @ errors / np.sqrt(days), INTERVAL)
    return float(slopes[-1] @ weights), (min(0.0, float(low)), max(0.0, float(high)))


def _slopes(at: Floats, crests: Floats, now: int) -> list[float]:
    """Return the slope of each of _LINES through the crests before `now`."""
    medians = {
        window: _theil_sen(at[max(0, now - window) : now], crests[max(0, now - window) : now])
        for window, _ in _LINES
    }
    return [share * medians[window] for window, share in _LINES]


def _past_errors(at: Floats, crests: Floats, slopes: Floats, moments: range) -> tuple[Floats, Floats]:
    """Return how much higher crests were than each line foretold, [line, forecast], and the days ahead."""
    errors, days = [], []
    for number, now in enumerate(moments):
        ahead = at[now : now + _LOOK_AHEAD_CRESTS] - at[now - 1]
        risen = crests[now : now + _LOOK_AHEAD_CRESTS] - crests[now - 1]
        errors.append(risen - slopes[number][:, None] * ahead)
        days.append(ahead / DAY_HOURS)
    return np.concatenate(errors, axis=1), np.concatenate(days)


def _scatter(at: Floats, crests: Floats, slope: float) -> tuple[float, float]:
    """Return how far crests lie from the line through the last one: too few of them to try it on the past."""
    days = (at[-1] - at[:-1]) / DAY_HOURS
    off = (crests[:-1] - crests[-1] + slope * (at[-1] - at[:-1])) / np.sqrt(days)
    widest = float(np.quantile(np.abs(off), INTERVAL[1]))
    return -widest, widest


def _theil_sen(at: Floats, crests: Floats) -> float:
    """Return the median slope of all pairs."""
    first, second = np.triu_indices(len(at), 1)
    return float(np.median((crests[second] - crests[first]) / (at[second] - at[first])))
