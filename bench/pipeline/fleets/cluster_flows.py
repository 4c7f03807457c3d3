"""Flows into the topics of a simulated cluster: bytes that producers write in each step of ten minutes.

Each flow has two rows: what came, and what had come if nothing had begun after the cut.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.pipeline.fleets.cluster_logs import DAY_MINUTES, DAY_STEPS, DAYS, HOUR_STEPS, STEP_MINUTES, STEPS
from kquota_pipeline.forecast.history import Floats, Ints

_STEP = np.arange(STEPS)
_MINUTES = _STEP * STEP_MINUTES


@dataclass(frozen=True, slots=True)
class Calendar:
    """The days of a cluster: its first weekday (0 is Monday), its hour of most traffic, its holidays (days
    since the beginning), and the minute of the forecast.
    """

    weekday: int
    busiest_hour: float
    holidays: tuple[int, ...]
    cut: float

    def weekdays(self) -> Ints:
        """Return the weekday of each day."""
        return (np.arange(DAYS) + self.weekday) % 7


class Flow:
    """The bytes that are written to one topic in each step: `rate`, [2, step]."""

    def __init__(self, calendar: Calendar, rate: Floats) -> None:
        self._calendar = calendar
        self.rate: Floats = np.vstack([rate, rate])

    def times(self, factor: Floats, begins: float = 0.0) -> None:
        """Multiply the rate, which begins to differ at a minute."""
        self.rate[: self._rows(begins)] *= factor

    def add(self, more: Floats, begins: float) -> None:
        """Add bytes, the first of them at a minute."""
        self.rate[: self._rows(begins)] += more

    def begin(self, minute: float, ramp_days: float) -> None:
        """Let the topic begin at a minute, and take this long to its full rate."""
        since = _MINUTES - minute
        grown = np.clip(since / max(ramp_days * DAY_MINUTES, STEP_MINUTES), 0.0, 1.0)
        self.rate *= np.where(since >= 0, 0.02 + 0.98 * grown, 0.0)
        if minute > self._calendar.cut:
            self.rate[1] = 0.0

    def end(self, minute: float) -> None:
        """Let its producers stop at a minute."""
        self.times(np.where(minute > _MINUTES, 1.0, 0.0), minute)

    def holidays(self, factor: float) -> None:
        """Let holidays have more or less than other days."""
        for day in self._calendar.holidays:
            self.times(window(day * DAY_MINUTES, 1.0, factor), day * DAY_MINUTES)

    def _rows(self, begins: float) -> int:
        return 2 if begins <= self._calendar.cut else 1


def steady(
    calendar: Calendar, rng: np.random.Generator, day_bytes: float, daily: float, weekend: float
) -> Flow:
    """Return a flow with the rhythm of days (0 to 1) and weeks, and noise of hours, days and weeks."""
    hour = _STEP % DAY_STEPS / HOUR_STEPS - calendar.busiest_hour
    sharp = rng.uniform(0.0, 0.35)
    wave = np.cos(2 * np.pi * hour / 24) + sharp * np.cos(4 * np.pi * hour / 24)
    rhythm = np.maximum(1 + daily * wave / (1 + sharp), 0.03)
    # Fridays are shorter, and the night between two days belongs to both.
    of_day = np.array(
        [1.0, 1.02, 1.02, 1.0, 0.5 + 0.5 * (weekend + 1) / 2, weekend, weekend * rng.uniform(0.85, 1.1)]
    )
    days = of_day[np.append(calendar.weekdays(), (calendar.weekday + DAYS) % 7)]
    weeks = np.interp(_STEP, (np.arange(DAYS + 1) + 0.5) * DAY_STEPS, days)
    noise = (
        _red_noise(rng, 1.0, rng.uniform(0.04, 0.15))
        + _red_noise(rng, 30.0, rng.uniform(0.03, 0.12))
        + _red_noise(rng, 24 * 14.0, rng.uniform(0.02, 0.10))
    )
    return Flow(calendar, day_bytes / DAY_STEPS * rhythm * weeks * np.exp(noise))


def window(minute: float, days: float, factor: float, ramp_days: float = 0.0) -> Floats:
    """Return a factor that applies for some days, and 1 otherwise; with a ramp it comes and goes slowly."""
    ahead = (_MINUTES - minute) / DAY_MINUTES
    if not ramp_days:
        return np.where((ahead >= 0) & (ahead < days), factor, 1.0)
    return 1 + (factor - 1) * np.clip(np.minimum(ahead, days - ahead) / ramp_days, 0.0, 1.0)


def burst(minute: float, hours: float, size_bytes: float) -> Floats:
    """Return bytes that come evenly within some hours."""
    ahead = (_MINUTES - minute) / 60
    inside = (ahead >= 0) & (ahead < max(hours, 1 / HOUR_STEPS))
    return np.where(inside, size_bytes / max(inside.sum(), 1), 0.0)


def since(minute: float, factor: float, ramp_days: float = 0.0) -> Floats:
    """Return a factor that applies from a minute on; with a ramp it comes slowly."""
    risen = (_MINUTES - minute + STEP_MINUTES) / max(ramp_days * DAY_MINUTES, STEP_MINUTES)
    return np.asarray(1 + (factor - 1) * np.clip(risen, 0.0, 1.0))


def growing(week_ratio: float) -> Floats:
    """Return the factor of a growth by this ratio each week, 1 in the middle of the simulation."""
    return np.asarray((1 + week_ratio) ** ((_STEP / DAY_STEPS - DAYS / 2) / 7))


def _red_noise(rng: np.random.Generator, memory_hours: float, deviation: float) -> Floats:
    """Return noise that forgets within some hours."""
    kept = np.exp(-1 / (HOUR_STEPS * memory_hours))
    spectrum = np.fft.rfft(rng.normal(size=STEPS)) / (1 - kept * np.exp(-2j * np.pi * np.fft.rfftfreq(STEPS)))
    return deviation * float(np.sqrt(1 - kept**2)) * np.fft.irfft(spectrum, STEPS)
