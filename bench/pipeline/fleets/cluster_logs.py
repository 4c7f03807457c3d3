"""Logs of the partitions of simulated clusters: Kafka rolls and deletes their segments. Pure.

Times are minutes since the simulation began. Bytes of a log are counted from its first record on, so a
segment is a stretch of that count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from kquota_pipeline.forecast.history import BOUND_HOURS, Floats, Ints

STEP_MINUTES = 10
HOUR_STEPS = 60 // STEP_MINUTES
DAY_STEPS = 24 * HOUR_STEPS
DAY_MINUTES = 24 * 60
DAYS = 104
STEPS = DAYS * DAY_STEPS
TIMES: Floats = np.arange(STEPS + 1.0) * STEP_MINUTES
CHECK_MINUTES = 5.0
"""`log.retention.check.interval.ms`."""
DELAY_MINUTES = 1.0
"""`file.delete.delay.ms`."""
_BOUND_MINUTES = 60 * BOUND_HOURS
_AHEAD: Floats = np.arange(32.0)
_DUST = 1e-9


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of a topic that decide about its segments.

    `kept_later` are changes of `keep_minutes`: since when, and how long from then on.
    """

    keep_minutes: float
    roll_minutes: float
    roll_bytes: float = float(2**30)
    kept_later: tuple[tuple[float, float], ...] = ()

    def until(self, minute: float) -> Rules:
        """Return the rules without what is changed later."""
        return replace(self, kept_later=tuple(one for one in self.kept_later if one[0] <= minute))

    @property
    def spans(self) -> list[tuple[float, float, float]]:
        """The retention from when until when, in order: (since, until, minutes)."""
        kept = [(0.0, self.keep_minutes), *self.kept_later]
        ends = [since for since, _ in kept[1:]] + [inf]
        return [(since, end, keep) for (since, keep), end in zip(kept, ends, strict=True)]

    def keep_at(self, minutes: Floats) -> Floats:
        """Return the retention at these times, in minutes."""
        kept = [keep for _, _, keep in self.spans]
        return np.array(kept)[np.searchsorted([since for since, _, _ in self.spans], minutes, "right") - 1]


class Log:
    """All segments of one partition, from its first record to the end of the simulation.

    `written` are the bytes that producers had written at each of TIMES. `filled` is the part of a first
    segment that is there already, and `phase` the minute of the broker's first check.
    """

    def __init__(
        self,
        written: Floats,
        rules: Rules,
        *,
        deleted: float = inf,
        filled: float = 0.0,
        phase: float = 0.0,
    ) -> None:
        self.written, self.rules, self._phase = written, rules, phase
        self._latest: Floats = np.maximum.accumulate(
            np.concatenate([[0.0], np.where(np.diff(written) > 0, TIMES[1:], 0.0)])
        )
        self.ends = self._cut(filled)
        self.newest = _reached(written, self.ends)
        self.gone = self._departs(self._due())
        self.deleted = deleted + DELAY_MINUTES
        self.gone = np.minimum(self.gone, self.deleted)

    @property
    def starts(self) -> Floats:
        """The first byte of each segment."""
        return np.concatenate([[0.0], self.ends[:-1]])

    def sizes(self, samples: Ints) -> Floats:
        """Return the bytes on disk at these of TIMES."""
        written = self.written[samples]
        size = written - self._from(samples)
        return np.where(TIMES[samples] >= self.deleted, 0.0, size)

    def leaving(self, samples: Ints) -> Floats:
        """Return the bytes that leave within each of BOUND_HOURS, and ever, as it is: [sample, bound]."""
        found = np.zeros((len(samples), len(_BOUND_MINUTES) + 1))
        if not len(self.ends):
            return found
        now, written, first = TIMES[samples], self.written[samples], self._from(samples)
        rolled = np.searchsorted(self.ends, written, "left")
        bounds = np.concatenate([[0.0], self.ends])
        for since, until, keep in self.rules.spans:
            rows = (now >= since) & (now < until)
            departs = self._departs(self.newest + keep)
            departs_active = self._departs(np.maximum(self._latest[samples] + keep, now))
            for bound, minutes in enumerate((*_BOUND_MINUTES, inf)):
                by_time = np.searchsorted(departs, now + minutes, "right")
                last = np.minimum(by_time, rolled)
                end = np.where(departs_active <= now + minutes, written, bounds[last])
                found[rows, bound] = np.maximum(end - first, 0.0)[rows]
        found[now >= self.deleted] = 0.0
        return found

    def _from(self, samples: Ints) -> Floats:
        """Return the first byte that is still there."""
        gone = np.searchsorted(self.gone, TIMES[samples], "right")
        first = np.concatenate([[0.0], self.ends])[gone]
        return np.asarray(np.minimum(first, self.written[samples]))

    def _departs(self, due: Floats) -> Floats:
        """Return when the files of segments are gone that may go at these times."""
        checks = np.ceil((due - self._phase) / CHECK_MINUTES)
        return np.asarray(self._phase + CHECK_MINUTES * checks + DELAY_MINUTES)

    def _due(self) -> Floats:
        """Return when each segment is older than the retention."""
        due = np.full(len(self.ends), inf)
        for since, until, keep in self.rules.spans:
            then = np.maximum(self.newest + keep, since)
            due = np.where(then < until, np.minimum(due, then), due)
        return np.maximum.accumulate(due)

    def _cut(self, filled: float) -> Floats:
        """Return where the segments end: each is rolled by size, or by age, or ends with its last record
        before a silence in which it expires.
        """
        rules, written = self.rules, self.written
        shortest = min(keep for _, _, keep in rules.spans)
        silences = _silences(written, shortest)
        ends: list[Floats] = []
        position, room, total = 0.0, rules.roll_bytes * (1 - filled), float(written[-1])
        while position < total:
            # As many as are full in time, one after the other.
            full: Floats = position + room + rules.roll_bytes * _AHEAD
            began = _passed(written, np.concatenate([[position], full[:-1]]))
            last = np.minimum(began + rules.roll_minutes, _next(silences, began))
            in_time = _reached(written, full) <= last
            many = len(_AHEAD) if in_time.all() else int(np.argmin(in_time))
            if not many:
                # As many as are too old first, one after the other, while records come all the time.
                aged = last[0] + rules.roll_minutes * _AHEAD
                full = np.interp(aged, TIMES, written)
                began = _passed(written, full[:-1])
                fits = np.diff(full) <= rules.roll_bytes
                steady = (np.abs(began - aged[:-1]) < 1e-6) & (_next(silences, began) > aged[1:])
                good = fits & steady & (aged[1:] < TIMES[-1])
                many = 1 + (len(good) if good.all() else int(np.argmin(good)))
            ends.append(full[:many])
            position, room = float(full[many - 1]), rules.roll_bytes
        if not ends:
            return np.zeros(0)
        found = np.concatenate(ends)
        return np.append(found[found < total], total)


def _reached(written: Floats, position: Floats) -> Floats:
    """Return when the last byte before a position was written; infinite where it is not."""
    step = np.searchsorted(written, position, "left")
    return _at(written, position, np.maximum(step, 1))


def _passed(written: Floats, position: Floats) -> Floats:
    """Return when the first byte from a position on was written; infinite where none is."""
    return _at(written, position, np.searchsorted(written, position, "right"))


def _at(written: Floats, position: Floats, step: Ints) -> Floats:
    inside = np.minimum(step, STEPS)  # never 0: the first of TIMES has nothing before it
    before = written[inside - 1]
    rise = np.maximum(written[inside] - before, _DUST)
    return np.where(step > STEPS, inf, STEP_MINUTES * (inside - 1 + (position - before) / rise))


def _silences(written: Floats, minutes: float) -> Floats:
    """Return the times of the last records before silences of at least this many minutes, and never."""
    busy = np.flatnonzero(np.diff(written) > 0)
    long = np.diff(busy, append=STEPS) - 1 >= minutes / STEP_MINUTES
    return np.append(TIMES[busy[long] + 1], inf)


def _next(silences: Floats, minutes: Floats) -> Floats:
    return silences[np.searchsorted(silences, minutes, "left")]
