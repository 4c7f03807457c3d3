"""Fleets to tune forecasts on: shapes of usage without any physics, and without looks at segments."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from bench.pipeline.fleets.made import MadeVolume
from kquota_pipeline.forecast.history import Floats, Series

_FIRST_HOUR = 496_000
_AFTER_DAYS = 31


def _walk(draw: np.random.Generator, hours: Floats) -> Floats:
    return np.asarray(
        0.5 + np.cumsum(draw.normal(draw.choice([0, 0, 2e-4]), draw.uniform(3e-4, 2e-3), len(hours)))
    )


def _saw(draw: np.random.Generator, hours: Floats) -> Floats:
    period = float(draw.choice([12, 24, 36, 60, 84, 120, 168, 168, 240]))
    height = draw.uniform(0.05, 0.4)
    tilt = draw.choice([0, 0, 0.001, 0.003]) * hours / 24
    phase = (hours + draw.uniform(0, period)) / period
    heights = height * draw.lognormal(0, draw.uniform(0, 0.15), int(phase[-1]) + 2)
    return np.asarray(0.35 + heights[phase.astype(int)] * (phase % 1) + tilt)


def _season(draw: np.random.Generator, hours: Floats) -> Floats:
    shape = np.repeat(draw.normal(0, 1, 7), 24)
    smooth = np.convolve(np.concatenate([shape[-12:], shape, shape[:12]]), np.ones(25) / 25, "valid")
    return np.asarray(
        0.5 + draw.uniform(0.02, 0.1) * smooth[hours.astype(int) % 168] + draw.uniform(0, 4e-5) * hours
    )


def _ramp(draw: np.random.Generator, hours: Floats) -> Floats:
    end = len(hours) - _AFTER_DAYS * 24
    begin = end - draw.uniform(1, 5) * 24
    keep = float(draw.choice([72, 120, 168, 168, 336]))
    return np.asarray(0.3 + draw.uniform(0.15, 0.4) * np.clip((hours - begin) / keep, 0, 1))


def _growth(draw: np.random.Generator, hours: Floats) -> Floats:
    noise = np.convolve(draw.normal(0, draw.uniform(0.01, 0.08), len(hours)), np.ones(12) / 12, "same")
    return np.asarray(0.4 + draw.uniform(0, 0.012) * hours / 24 + noise)


def _regimes(draw: np.random.Generator, hours: Floats) -> Floats:
    slope, found, level = 0.0, np.empty(len(hours)), 0.5
    for hour in range(len(hours)):
        if draw.random() < 1 / (24 * 12):
            slope = draw.normal(0, 2.5e-4)
            level += draw.choice([0, 0, -0.1, 0.06])
        level = min(max(level + slope, 0.15), 0.95)
        found[hour] = level
    return found


def _plateau(draw: np.random.Generator, hours: Floats) -> Floats:
    teeth = draw.uniform(0.01, 0.06) * ((hours / draw.uniform(3, 40)) % 1)
    return np.asarray(draw.uniform(0.3, 0.7) + teeth)


def _bursts(draw: np.random.Generator, hours: Floats) -> Floats:
    found = np.full(len(hours), 0.4)
    keep = int(draw.choice([24, 72, 168]))
    for begin in draw.integers(0, len(hours), int(draw.integers(2, 9))):
        rise = int(draw.uniform(2, 30))
        bump = np.concatenate(
            [np.linspace(0, 1, rise), np.ones(max(0, keep - rise)), np.linspace(1, 0, rise)]
        )
        end = min(len(hours), begin + len(bump))
        found[begin:end] += draw.uniform(0.05, 0.25) * bump[: end - begin]
    return found


FAMILIES: Mapping[str, Callable[[np.random.Generator, Floats], Floats]] = {
    "walk": _walk,
    "saw": _saw,
    "season": _season,
    "ramp": _ramp,
    "noisy growth": _growth,
    "regimes": _regimes,
    "plateau": _plateau,
    "bumps": _bursts,
}


def fleet(seed: int, volumes_per_family: int = 20) -> list[MadeVolume]:
    """Return volumes of all families; the same seed gives the same fleet."""
    return [volume for family in FAMILIES for volume in volumes(seed, family, volumes_per_family)]


def volumes(seed: int, family: str, count: int) -> list[MadeVolume]:
    """Return volumes of one family."""
    kind = list(FAMILIES).index(family)
    return [
        _volume(family, number, np.random.default_rng([seed, 23, kind, number])) for number in range(count)
    ]


def _volume(family: str, number: int, draw: np.random.Generator) -> MadeVolume:
    days = int(draw.choice([4, 14, 28, 42, 60]))
    clock = np.arange((days + _AFTER_DAYS) * 24, dtype=float)
    used = FAMILIES[family](draw, clock)
    rhythm = draw.uniform(0, 0.02) * np.sin(clock / 24 * 2 * np.pi)
    used = np.maximum(used + rhythm + draw.normal(0, draw.uniform(0.0005, 0.006), len(clock)), 0.01)
    cut = days * 24 - 1
    used = used * draw.uniform(0.4, 0.8) / used[max(0, cut - 168) : cut].max()
    hours = np.arange(len(clock)) + _FIRST_HOUR
    series = Series(
        hours,
        np.minimum(used, 1.0) * 1e12,
        np.zeros(len(hours)),
        1e12,
        np.full(len(hours), "a", dtype=object),
    )
    soft = draw.uniform(0.75, 0.9)
    return MadeVolume(
        family, f"{family}-{number}", series, None, _FIRST_HOUR + cut, soft * 1e12, (soft + 0.08) * 1e12
    )
