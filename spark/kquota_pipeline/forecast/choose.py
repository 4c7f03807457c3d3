"""Which of several forecasts a volume gets: by how wrong each was at earlier moments of this volume.

At each of the last weeks' days every method forecasts from what was known then. Methods are weighted by a
power of their mean error, and errors of near days count more for near days.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kquota_pipeline.forecast.history import Floats

# A method that was half as wrong as another one counts 64 times as much.
_POWER = 6.0
# Trials count less the longer they are ago, and the further their horizon is from the one that is asked for.
_PER_DAY = 0.8
_NEAR_DAYS = 3.0
_GROWTH = 0.5


@dataclass(frozen=True, slots=True)
class Trials:
    """Forecasts at earlier moments: `foretold` is [method, moment, day ahead] in bytes, moment 0 is now,
    moment k is k days ago; NaN where a method has none. `came` is [moment, day ahead], NaN where it is yet to
    come.
    """

    foretold: Floats
    came: Floats


@dataclass(frozen=True, slots=True)
class Chosen:
    """The weighted forecast at each moment, [moment, day ahead], and its usual error, both made of what was
    known at that moment alone. `weights` are those of now, [method, day ahead].
    """

    foretold: Floats
    usual_error: Floats
    weights: Floats


def choose(
    trials: Trials, prior_errors: Floats, prior_trials: float, least_error: float, trust: Floats | None = None
) -> Chosen:
    """Weigh the methods at each moment by their errors until then.

    `prior_errors` [method, day ahead] count as much as `prior_trials` trials. No error counts as less than
    `least_error`. `trust` [method] multiplies the weights of now: what trials cannot show.
    """
    methods, moments, ahead = trials.foretold.shape
    days = np.arange(1, ahead + 1)
    growth = days**_GROWTH
    # Errors in units of what they usually are this many days ahead.
    errors = np.abs(trials.foretold - trials.came) / growth
    known = np.isfinite(errors)
    errors = np.where(known, errors, 0.0)
    near = np.exp(-np.abs(np.log(days[:, None] / days[None])) * _NEAR_DAYS)
    foretold = np.full((moments, ahead), np.nan)
    usual = np.full((moments, ahead), np.nan)
    weights = np.zeros((methods, ahead))
    number = np.arange(moments)
    for moment in range(moments - 1, -1, -1):
        there = np.isfinite(trials.foretold[:, moment, 0])
        if not there.any():
            continue
        age = number[:, None] - moment - days[None]
        counted = np.where(age >= 0, _PER_DAY ** np.maximum(age, 0), 0.0)
        sums = np.einsum("mkd,kd->md", errors, counted) @ near
        counts = np.einsum("mkd,kd->md", known, counted) @ near
        sizes = (sums + prior_errors / growth * prior_trials) / (counts + prior_trials)
        sizes = np.maximum(sizes, least_error)
        weights = np.where(there[:, None], sizes**-_POWER, 0.0)
        if moment == 0 and trust is not None:
            weights = weights * trust[:, None]
        weights /= weights.sum(axis=0)
        own = np.where(there[:, None], trials.foretold[:, moment], 0.0)
        foretold[moment] = (weights * own).sum(axis=0)
        usual[moment] = (weights * sizes).sum(axis=0) * growth
    return Chosen(foretold, usual, weights)
