"""The trend of one volume, robust to what happens to disks. Pure: arrays in, figures out.

A disk's content rises and falls with retention, so a line through all samples says little. What fills a disk
are the crests of its saw-teeth. Hence: whole days (or whole teeth, where they are longer) become one crest
each, and the median of the slopes between all pairs of crests (Theil and Sen) is the trend: up to 29 % of
the crests may be anything. Before that, what was no growth is taken out:

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
# Fewer crests than these say nothing about a trend.
MIN_CRESTS = 4
# Crests of several days are fewer: with less than these, days say more.
_MIN_LONG_CRESTS = 7
# Older crests than these tell of other times.
MAX_CRESTS = 28
# Lines are drawn through so many of the last crests, tried at so many past moments, so far ahead.
_WINDOWS = (MAX_CRESTS, 14, 7)
_LOOKS_BACK = 14
_LOOK_AHEAD_CRESTS = 7
# The height of a line is that of the last crests.
_LEVEL_CRESTS = 3
# A jump is larger than this share of the capacity and than this many usual hourly changes.
_JUMP_CAPACITY_SHARE = 0.03
_JUMP_USUAL_CHANGES = 8.0
# Jumps of one direction that are alike within this ratio belong to a saw-tooth, from three on.
_ALIKE = 2.0
_TEETH = 3
# The interval covers this share: one in ten ends earlier, one in ten later.
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
    """Crests now and to come: the level at `hour`, bytes per day with an interval, and how far crests
    scatter.
    """

    hour: float
    level_bytes: float
    slope_bytes_per_day: float
    slope_low_bytes_per_day: float
    slope_high_bytes_per_day: float
    scatter_low_bytes: float
    scatter_high_bytes: float
    crests: int

    def crest_at(self, hour: float) -> float:
        """Return the expected crest, in bytes, at an epoch hour."""
        return self.level_bytes + self.slope_bytes_per_day * (hour - self.hour) / DAY_HOURS

    def band_at(self, hour: float) -> tuple[float, float]:
        """Return the interval of the crest, in bytes, at an epoch hour."""
        days = (hour - self.hour) / DAY_HOURS
        low = self.level_bytes + self.scatter_low_bytes + self.slope_low_bytes_per_day * days
        return low, self.level_bytes + self.scatter_high_bytes + self.slope_high_bytes_per_day * days


def trend_of(series: Series) -> Trend | None:
    """Return the trend of the crests, or None where there is too little to tell."""
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
    line = _weighed_line(at, crests)
    return Trend(
        hour=float(hours[-1]),
        level_bytes=line.height_at(float(open_hours[-1])),
        slope_bytes_per_day=line.slope * DAY_HOURS,
        slope_low_bytes_per_day=line.low * DAY_HOURS,
        slope_high_bytes_per_day=line.high * DAY_HOURS,
        scatter_low_bytes=line.scatter[0],
        scatter_high_bytes=line.scatter[1],
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
    """Return where more changed than the usual growth of so many hours explains."""
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


@dataclass(frozen=True, slots=True)
class _Line:
    """Heights by hour: the slope with its interval, through the median of the last crests."""

    slope: float
    low: float
    high: float
    middle: float
    scatter: tuple[float, float]

    def height_at(self, hour: float) -> float:
        return self.middle + self.slope * hour


def _weighed_line(at: Floats, crests: Floats) -> _Line:
    """Return the mean of lines through more or fewer of the last crests, weighed by how well each foretold.

    A month tells more than a week, unless something has changed since: what a volume did after each of its
    past moments says which it is. Half of the lines do not rise at all. How wrong the mean would have been
    then widens its interval now.
    """
    candidates = [(window, rising) for window in _WINDOWS for rising in (True, False)]
    lines = [_line(at[-window:], crests[-window:], rising) for window, rising in candidates]
    tried = [_past_errors(at, crests, window, rising) for window, rising in candidates]
    ahead = tried[0][1]
    if not len(ahead):
        return lines[0]
    squared = np.array([np.mean(errors**2) for errors, _ in tried])
    weights = 1 / np.maximum(squared, squared.max() * 1e-9 + 1e-300)
    weights /= weights.sum()
    return _widened(_mean(lines, weights), weights @ np.array([errors for errors, _ in tried]), ahead)


def _mean(lines: list[_Line], weights: Floats) -> _Line:
    def of(values: list[float]) -> float:
        return float(weights @ np.array(values))

    return _Line(
        slope=of([line.slope for line in lines]),
        low=of([line.low for line in lines]),
        high=of([line.high for line in lines]),
        middle=of([line.middle for line in lines]),
        scatter=(of([line.scatter[0] for line in lines]), of([line.scatter[1] for line in lines])),
    )


def _past_errors(at: Floats, crests: Floats, window: int, rising: bool) -> tuple[Floats, Floats]:
    """Return how much higher crests were than lines drawn at the last moments foretold, and the hours
    ahead.
    """
    errors, ahead = [], []
    for now in range(max(MIN_CRESTS, len(at) - _LOOKS_BACK), len(at)):
        line = _line(at[max(0, now - window) : now], crests[max(0, now - window) : now], rising)
        later = slice(now, now + _LOOK_AHEAD_CRESTS)
        errors.append(crests[later] - (line.middle + line.slope * at[later]))
        ahead.append(at[later] - at[now - 1])
    if not errors:
        return np.empty(0), np.empty(0)
    return np.concatenate(errors), np.concatenate(ahead)


def _widened(line: _Line, errors: Floats, ahead: Floats) -> _Line:
    """Return the line with an interval that its own past errors would have kept to."""
    if len(errors) < _LOOK_AHEAD_CRESTS:
        return line
    soon = errors[ahead <= np.median(ahead)]
    low, high = np.quantile(soon, INTERVAL)
    per_hour_low, per_hour_high = np.quantile(errors / ahead, INTERVAL)
    return _Line(
        slope=line.slope,
        low=min(line.low, line.slope + float(per_hour_low)),
        high=max(line.high, line.slope + float(per_hour_high)),
        middle=line.middle,
        scatter=(min(line.scatter[0], float(low)), max(line.scatter[1], float(high))),
    )


def _line(at: Floats, crests: Floats, rising: bool) -> _Line:
    slope, low, high = _theil_sen(at, crests)
    if not rising:
        slope, low, high = 0.0, min(0.0, low), max(0.0, high)
    residuals = crests - slope * at
    middle = float(np.median(residuals[-_LEVEL_CRESTS:]))
    scatter = np.quantile(residuals - middle, INTERVAL)
    return _Line(slope, low, high, middle, (float(scatter[0]), float(scatter[1])))


def _theil_sen(at: Floats, crests: Floats) -> tuple[float, float, float]:
    """Return the median slope of all pairs, and the interval that Sen's rank statistic gives for it."""
    first, second = np.triu_indices(len(at), 1)
    slopes = np.sort((crests[second] - crests[first]) / (at[second] - at[first]))
    count, pairs = len(at), len(slopes)
    # 1.2816: the normal quantile of 0.9; the variance of Kendall's S without ties
    half_width = 1.2816 * np.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(0, int(np.floor((pairs - half_width) / 2)))
    high = min(pairs - 1, int(np.ceil((pairs + half_width) / 2)))
    return float(np.median(slopes)), float(slopes[low]), float(slopes[high])
