"""Topics whose settings change while they live: lists of segments, each with the time of its newest record.

Times are hours, bytes are shares of a disk. The oldest segment goes in the first hour in which its newest
record is older than the retention of that hour, and never before the one in front of it. Records may come
late (mirrors), settings may change, and whole partitions may come and go.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kquota_pipeline.forecast.history import BOUND_HOURS, Floats, Ints

# A check each five minutes and a minute until files are removed, rounded up.
LATEST_HOURS = 0.1


@dataclass(frozen=True, slots=True)
class Topic:
    """By hour: bytes that come in, the hours that they are kept (inf: forever), the hours by which the newest
    record is late, and the share of its partitions that is on this disk. A segment ends with `roll_bytes` or
    after `roll_hours`.
    """

    rate: Floats
    keep_hours: Floats
    late_hours: Floats
    here: Floats
    roll_bytes: float
    roll_hours: float

    def contents(self) -> tuple[Floats, Floats]:
        """Return the bytes at the end of each hour, [hour], and those that leave, [hour, bucket]."""
        hours = np.arange(len(self.rate))
        written = np.concatenate([[0.0], np.cumsum(self.rate)])
        begun = self._begun(written)
        newest = self._newest(begun)
        first = np.searchsorted(self._gone(newest), hours, "right")
        active = np.searchsorted(begun, hours, "right") - 1
        behind = written[begun[np.minimum(first, len(begun) - 1)]]
        size = np.where(first > active, 0.0, np.maximum(written[hours + 1] - behind, 0.0))
        within = np.zeros((len(hours), len(BOUND_HOURS) + 1))
        kept = np.isfinite(self.keep_hours)
        stamp = hours - self.late_hours
        for number, bound in enumerate(BOUND_HOURS):
            until = np.where(kept, hours + bound - LATEST_HOURS - self.keep_hours, -np.inf)
            through = np.minimum(np.searchsorted(newest, until, "right"), active)
            closed = written[begun[through]] - behind
            within[:, number] = np.where(until >= stamp, size, np.clip(closed, 0.0, size))
        within[:, -1] = np.where(kept, size, 0.0)
        leaving = np.diff(within, axis=1, prepend=0.0)
        return size * self.here, np.maximum(leaving, 0.0) * self.here[:, None]

    def _begun(self, written: Floats) -> Ints:
        begun = [0]
        while True:
            full = int(np.searchsorted(written, written[begun[-1]] + self.roll_bytes))
            after = max(min(full, begun[-1] + max(round(self.roll_hours), 1)), begun[-1] + 1)
            if after >= len(self.rate):
                return np.array(begun)
            begun.append(after)

    def _newest(self, begun: Ints) -> Floats:
        """Return the time of the newest record of each segment and those before it."""
        filled = np.flatnonzero(self.rate > 0)
        ends = np.append(begun[1:], len(self.rate))
        last = np.searchsorted(filled, ends) - 1
        hour = np.where(last >= 0, filled[np.maximum(last, 0)] if len(filled) else 0, 0)
        return np.asarray(np.maximum.accumulate(hour - self.late_hours[hour]))

    def _gone(self, newest: Floats) -> Ints:
        """Return the hour in which each segment goes; after all hours if it stays."""
        horizon = np.arange(len(self.rate)) - self.keep_hours
        found = []
        at = 0
        for stamp in newest:
            over = horizon[at:] > stamp
            at += int(np.argmax(over)) if over.any() else len(over)
            found.append(at)
            if at >= len(horizon):
                break
        return np.array(found + [len(horizon)] * (len(newest) - len(found)))


def rhythm(draw: np.random.Generator, hours: int, usual_from: int | None = None) -> Floats:
    """Return the traffic of people: two peaks a day, other weekends, days that resemble the day before.

    From the hour `usual_from` on it has no chance: the same traffic as it was to be expected.
    """
    clock = np.arange(hours)
    of_day = clock % 24
    morning, evening = draw.uniform(8, 12), draw.uniform(17, 22)
    width = draw.uniform(2, 5)
    peaks = np.zeros(hours)
    for peak, highest in ((morning, 1.5), (evening, 1.5)):
        apart = np.minimum(np.abs(of_day - peak), 24 - np.abs(of_day - peak))
        peaks += draw.uniform(0, highest) * np.exp(-(apart**2) / (2 * width**2))
    days = hours // 24 + 1
    drift = np.zeros(days)
    for day in range(1, days):
        drift[day] = 0.6 * drift[day - 1] + draw.normal(0, 0.05)
    weekend = draw.uniform(0.35, 1.15)
    weekday = (clock // 24 + draw.integers(7)) % 7
    noise = draw.gamma(60, 1 / 60, hours)
    shape = (draw.uniform(0.3, 1) + peaks) * np.where(weekday >= 5, weekend, 1.0)
    swing = np.exp(np.repeat(drift, 24)[:hours])
    mean = (shape * swing * noise).mean()
    if usual_from is not None:
        day = (usual_from - 1) // 24
        left = drift[day] * 0.6 ** np.arange(days - day)
        swing[usual_from:] = np.exp(np.repeat(left, 24)[usual_from - 24 * day : hours - 24 * day])
        noise[usual_from:] = 1.0
    return np.asarray(shape * swing * noise / mean)


def compacted(
    draw: np.random.Generator, live: Floats, updates: Floats, stuck: tuple[int, int] | None = None
) -> Floats:
    """Return the bytes of a compacted topic: of live keys, and of updates until the cleaner has run.

    Tombstones make `live` smaller; what they removed stays until then. The cleaner stands still from one of
    the hours in `stuck` until the other.
    """
    ratio, found = draw.uniform(0.3, 0.6), np.zeros(len(live))
    clean, dirty = float(live[0]), 0.0
    for hour in range(len(live)):
        dirty += float(updates[hour])
        runs = stuck is None or not stuck[0] <= hour < stuck[1]
        if runs and dirty > ratio * (dirty + clean):
            clean, dirty = float(live[hour]), 0.0
        found[hour] = clean + dirty
    return found
