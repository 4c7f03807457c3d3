"""Intervals of crests to come."""

from __future__ import annotations

import numpy as np

from kquota_pipeline.forecast.conformal import USUAL, within_disk

GIB = 2.0**30


def test_crests_and_their_bounds_lie_between_nothing_and_the_whole_disk() -> None:
    crests = np.array([-1.0, 2.0, 99.0]) * GIB
    usual_errors = np.full(3, 10 * GIB)

    shown = within_disk(crests, usual_errors, USUAL, 100 * GIB)

    assert all((found >= 0).all() and (found <= 100 * GIB).all() for found in shown)
    assert shown[1][0] == 0
    assert shown[2][2] == 100 * GIB
