"""The forecast of one volume: by its expiry where agents have looked at segments, and by its usage."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from kquota_pipeline.forecast.days import Days, days_of
from kquota_pipeline.forecast.history import DAY_HOURS, Floats, Looks, Series
from kquota_pipeline.forecast.newcomer import Newcomer, newcomer_by_surprise, newcomer_of, rise_to_come
from kquota_pipeline.forecast.physics import learned, leaving_to_come, unseen_bytes
from kquota_pipeline.forecast.trials import (
    AHEAD_DAYS,
    Methods,
    came_after,
    chosen,
    corrected,
    corrected_by_week,
    even_growth,
    only_now,
    usage_methods,
    without_gaps,
)

_LEAST_ERROR_RATIO = 0.0015
# With few days, back-tests are too few to show how wrong a forecast may be.
# It is more than twice as wrong with two days, and a third more with five.
_FEW_DAYS, _FEW_DAYS_POWER = 4.0, -1.6
_SPIKE_RATIO = 0.03
_YOUNG_DAYS = 8
# Looks that are older than this say nothing about now.
_STALE_HOURS = 6
# New topics that will take this share of the disk within a week, and jobs that have ended with it: usage has
# nothing to foresee them by.
_NEW_RATIO = 0.02
_NEW_TRUST = 3e4
# Back-tests of days with another retention, or with a topic that is deleted, say nothing about days to come.
_LATELY_DAYS, _CHANGED_TRUST = 14, 3e13
# And nothing in the past is like them: by this share of the rise, at least, the forecast may be wrong.
_NEW_ERROR_RATIO = {"expiry": 0.15, "usage": 0.4, "short history": 0.4}


class Basis(StrEnum):
    """The data that a forecast is made of; errors of volumes of one kind are pooled."""

    EXPIRY = "expiry"
    USAGE = "usage"
    YOUNG = "short history"


@dataclass(frozen=True, slots=True)
class VolumeForecast:
    """The crest of each day to come (bytes), its usual error (bytes), and past errors in units of that. A
    crest may be higher than the disk: what would be there, if there was room.

    `past_errors` and `past_highest` are [moment, day ahead], NaN where not known: how much higher a day's
    crest, or the highest until that day, was than foretold. `weights` are those of the methods a week ahead.
    """

    basis: Basis
    crest_bytes: Floats
    usual_error_bytes: Floats
    past_errors: Floats
    past_highest: Floats
    days: int
    weights: dict[str, float]


class _ByExpiry(NamedTuple):
    """`unseen_bytes` are those that no back-test has seen come or go; `changed_bytes` those of topics that
    have been deleted lately, or have another retention.
    """

    methods: Methods
    unseen_bytes: float
    changed_bytes: float


def volume_forecast(series: Series, looks: Looks | None) -> VolumeForecast | None:
    """Return the forecast of a volume at its last hour, None with less than two days."""
    if series.capacity_bytes <= 0:
        return None
    days = days_of(series)
    crests = without_gaps(days)
    if crests is None:
        return None
    came = came_after(days)
    least = _LEAST_ERROR_RATIO * series.capacity_bytes
    methods = usage_methods(crests, days.crest_bytes)
    basis = Basis.USAGE if len(crests) >= _YOUNG_DAYS else Basis.YOUNG
    trusted: Methods = {}
    most_trust, likely = _NEW_TRUST, 1.0
    found = None if looks is None else _by_expiry(series, looks, days, least)
    if found is not None:
        basis = Basis.EXPIRY
        methods |= found.methods
        if found.unseen_bytes > _NEW_RATIO * series.capacity_bytes:
            trusted = found.methods
        if found.changed_bytes > _NEW_RATIO * series.capacity_bytes:
            trusted, most_trust = {"expiry": found.methods["expiry"]}, _CHANGED_TRUST
    # Looks that name topics show all that is new.
    if not trusted and (found is None or looks is None or not looks.topics):
        newcomer = _newcomer(days, crests, methods, came, series.capacity_bytes, least)
        if newcomer is not None:
            crest, likely = newcomer
            trusted = {"newcomer": only_now(crest, len(came))}
            methods |= trusted
    trust = np.array([most_trust if name in trusted else 1.0 for name in methods])
    best = chosen(methods, came, crests, least, trust)
    if trusted:
        rise = np.abs(best.foretold[0] - crests[-1])
        best.usual_error[0] = np.maximum(best.usual_error[0], _NEW_ERROR_RATIO[basis] * rise / likely)
    best.usual_error[0] *= 1 + _FEW_DAYS * len(crests) ** _FEW_DAYS_POWER
    highest = np.maximum.accumulate(came, axis=1) - np.maximum.accumulate(best.foretold, axis=1)
    return VolumeForecast(
        basis,
        np.maximum(best.foretold[0], 0.0),
        best.usual_error[0],
        ((came - best.foretold) / best.usual_error)[1:],
        (highest / best.usual_error)[1:],
        len(crests),
        {name: float(weight[6]) for name, weight in zip(methods, best.weights, strict=True)},
    )


def _newcomer(
    days: Days, crests: Floats, methods: Methods, came: Floats, capacity_bytes: float, least: float
) -> tuple[Floats, float] | None:
    """Return the crests to come with a new inflow that usage alone shows, and how likely it goes on; None
    where there is none. The crests are the mean of those with it and those without, by how likely it is.
    """
    before = chosen(methods, came, crests, least)
    newcomer = newcomer_of(days.crest_bytes, capacity_bytes) or newcomer_by_surprise(
        days.crest_bytes, came - before.foretold, before.usual_error, capacity_bytes
    )
    if newcomer is None:
        return None
    rise = rise_to_come(newcomer, capacity_bytes, AHEAD_DAYS)
    with_it = _without_newcomer(before.foretold, crests, newcomer) + rise
    crest = newcomer.likely * with_it + (1 - newcomer.likely) * before.foretold[0]
    return crest, newcomer.likely


def _without_newcomer(foretold: Floats, crests: Floats, newcomer: Newcomer) -> Floats:
    """Return the days to come at the height of now, with the rhythm that was foretold before it began."""
    began = int(np.ceil(newcomer.age_days))
    if began >= len(foretold) or not np.isfinite(foretold[began]).all():
        return np.full(AHEAD_DAYS, crests[-1])
    days = began + np.arange(AHEAD_DAYS)
    days = np.where(days < AHEAD_DAYS, days, days - 7 * ((days - AHEAD_DAYS) // 7 + 1))
    return np.asarray(foretold[began, days] + crests[-1] - foretold[began, began - 1])


def _by_expiry(series: Series, looks: Looks, days: Days, least: float) -> _ByExpiry | None:
    """Return what the sum of what expires and what flows in says; None where looks are too few or too old."""
    own = looks.since(days.since_hour)
    learnt = learned(own)
    if learnt is None or series.hours[-1] - own.hours[-1] > _STALE_HOURS:
        return None
    seen: NDArray[np.bool_] = series.hours >= own.hours[0]
    leaving = np.interp(series.hours[seen], own.hours, own.leaving_bytes.sum(axis=1))
    staying = _staying(series, seen, leaving, least)
    if staying is None:
        return None
    moments = len(came_after(days))
    found = np.full((moments, AHEAD_DAYS), np.nan)
    for moment in range(min(moments, len(staying))):
        end = int(days.end_hours[-1 - moment])
        now = int(np.searchsorted(own.hours, end, "right")) - 1
        if now < DAY_HOURS or end - own.hours[now] > _STALE_HOURS:
            continue
        come = leaving_to_come(learnt, own, now, AHEAD_DAYS)
        come += days.moved_bytes[-1 - moment]
        found[moment] = come.reshape(AHEAD_DAYS, DAY_HOURS).max(axis=1) + staying[moment]
    if not np.isfinite(found[0]).all():
        return None
    came = came_after(days)
    methods = {"expiry": found, "expiry corrected": corrected(found, came)}
    by_week = corrected_by_week(found, came)
    if np.isfinite(by_week[0]).all():
        methods["expiry by week"] = by_week
    lately = own.since(int(own.hours[-1]) - _LATELY_DAYS * DAY_HOURS)
    changed = lately.topic_bytes[-1][(lately.kept_longer() != 0).any(axis=0)].sum()
    changed += lately.topic_bytes[:, lately.deleted()].max(axis=0).sum()
    return _ByExpiry(methods, unseen_bytes(learnt, own, 7 * DAY_HOURS), float(changed))


def _calmed(rest: Floats, capacity_bytes: float) -> Floats:
    """Return the rest without single hours in which much left: crests came before it, looks later."""
    usual = np.median(sliding_window_view(np.pad(rest, 2, mode="edge"), 5), axis=1)
    return np.where(rest - usual > _SPIKE_RATIO * capacity_bytes, usual, rest)


def _staying(series: Series, seen: NDArray[np.bool_], leaving: Floats, least: float) -> Floats | None:
    """Return the forecast of what does not leave by itself, [moment, day ahead]."""
    rest = Series(
        series.hours[seen],
        _calmed(series.crest_bytes[seen] - leaving, series.capacity_bytes),
        series.held[seen],
        series.capacity_bytes,
        series.volume_ids[seen],
    )
    days = days_of(rest)
    crests = without_gaps(days)
    if crests is None:
        return None
    methods = usage_methods(crests, days.crest_bytes)
    methods["even growth"] = even_growth(crests, days.crest_bytes)
    foretold = chosen(methods, came_after(days), crests, least).foretold
    back = days.moved_bytes[::-1][: len(foretold)]
    return np.asarray(foretold - back[:, None])
