"""Hours of volumes for tests of the forecast."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kquota_pipeline.forecast.history import BOUND_HOURS, DAY_HOURS, Floats, Looks, Series

CAPACITY = 1000.0
FIRST_HOUR = 490_000


def series(
    crest: Floats,
    *,
    held: Floats | None = None,
    ids: list[str] | None = None,
    hours: NDArray[np.int64] | None = None,
) -> Series:
    return Series(
        hours=FIRST_HOUR + (np.arange(len(crest)) if hours is None else hours),
        crest_bytes=np.asarray(crest, dtype=float),
        held=np.zeros(len(crest)) if held is None else held,
        capacity_bytes=CAPACITY,
        volume_ids=np.array(ids or ["a"] * len(crest), dtype=object),
    )


def growth(days: int, per_day: float, level: float = 300.0, seed: int = 1) -> Floats:
    """Return steady growth with a day's rhythm and some noise."""
    hours = np.arange(days * DAY_HOURS)
    noise = np.random.default_rng(seed).normal(0, 1, len(hours))
    return np.asarray(level + per_day * hours / DAY_HOURS + 5 * np.sin(hours / 24 * 2 * np.pi) + noise)


def retained(rate: Floats, keep_hours: int) -> tuple[Floats, Floats]:
    """Return the bytes of a topic of these bytes per hour at the end of each, and those in each bucket,
    [hour, bucket]. Each hour's bytes leave as a whole, some minutes after their time.
    """
    size = np.zeros(len(rate))
    leaving = np.zeros((len(rate), len(BOUND_HOURS) + 1))
    for born, own in enumerate(rate):
        there = np.arange(born, min(born + keep_hours + 1, len(rate)))
        size[there] += own
        left = born + keep_hours - there + 0.1  # the latest check, and the delay until files are removed
        leaving[there, np.searchsorted(BOUND_HOURS, left)] += own
    return size, leaving


def looks(topics: dict[str, tuple[Floats, Floats]], never: Floats | None = None) -> Looks:
    """Return looks at topics, each as `retained` has it."""
    sizes = np.stack([size for size, _ in topics.values()], axis=1)
    soon = np.stack([leaving[:, :2].sum(axis=1) for _, leaving in topics.values()], axis=1)
    leaving = np.sum([leaving for _, leaving in topics.values()], axis=0)
    hours = FIRST_HOUR + np.arange(len(sizes))
    return Looks(hours, leaving, np.zeros(len(sizes)) if never is None else never, tuple(topics), sizes, soon)
