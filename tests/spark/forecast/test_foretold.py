"""How right forecasts are on fleets that the method was not tuned on: a small form of the bench."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.pipeline.figures import BEGUN, EXPECTED, Foresight, claims
from bench.pipeline.fleets import changes
from bench.pipeline.foretold import (
    BY_USAGE,
    ETS,
    LINE,
    NAIVE,
    OURS,
    begun,
    expected,
    foresight,
    naive,
    ours,
    predict_linear,
    together,
)

VOLUMES_PER_FAMILY = 5


@pytest.fixture(scope="module")
def by_method() -> dict[str, Foresight]:
    """The figures of each method over all families; AutoETS takes part in the bench alone."""
    volumes = changes.fleet(1, VOLUMES_PER_FAMILY)
    blind = [volume.without_looks() for volume in volumes]
    found = foresight("changes", volumes, OURS, ours(volumes))
    found += foresight("changes", blind, BY_USAGE, ours(blind))
    found += foresight("changes", volumes, NAIVE, naive(volumes))
    found += foresight("changes", volumes, LINE, predict_linear(volumes))
    found += foresight("changes", volumes, BEGUN, begun(volumes))
    found += foresight("changes", volumes, EXPECTED, expected(volumes))
    return {one.method: one for one in together(found)}


@pytest.mark.accepts("G23")
def test_forecasts_of_fleets_that_they_were_not_tuned_on_are_right_as_often_as_they_say(
    by_method: dict[str, Foresight],
) -> None:
    """With generous margins: these are few volumes, and operators change half of them.

    The bench has the figures of many, with the aims that are missed.
    """
    for method in (OURS, BY_USAGE):
        one = by_method[method]
        assert one.covered_ratio is not None
        assert 0.6 <= one.covered_ratio <= 0.9, method
        assert one.false <= 0.25 * one.not_crossed, method
    assert by_method[OURS].foreseeable >= 5
    assert by_method[OURS].foreseen >= 0.6 * by_method[OURS].foreseeable


def test_expiry_makes_forecasts_better_than_usage_does_and_usage_better_than_a_line(
    by_method: dict[str, Foresight],
) -> None:
    errors = {method: one.mean_error_ratio for method, one in by_method.items()}
    assert errors[OURS] < 0.95 * errors[BY_USAGE]
    assert errors[OURS] < 0.85 * errors[NAIVE]
    assert errors[NAIVE] < 0.6 * errors[LINE]


def test_no_method_is_better_than_those_who_know_the_volume(by_method: dict[str, Foresight]) -> None:
    begun, expected = by_method[BEGUN], by_method[EXPECTED]
    assert 0 < begun.mean_error_ratio < expected.mean_error_ratio
    for method in by_method.keys() - {BEGUN, EXPECTED}:
        assert expected.mean_error_ratio < by_method[method].mean_error_ratio
    # Exactly those crossings are known that are called foreseeable.
    assert begun.found == begun.foreseen == begun.foreseeable == by_method[OURS].foreseeable


def test_a_volume_that_was_not_made_without_what_begins_has_no_floor() -> None:
    made = changes.fleet(2, 1)[0]
    assert begun([made]) != [None]
    assert begun([replace(made, usual=None)]) == expected([replace(made, usual=None)]) == [None]


def test_an_aim_that_even_who_knows_the_volume_misses_is_said_to_be_out_of_reach(
    by_method: dict[str, Foresight],
) -> None:
    ours, known = (replace(by_method[name], family="all") for name in (OURS, BEGUN))

    def cause(known_error: float) -> str:
        figures = [
            replace(one, method=method, mean_error_ratio=error)
            for one, method, error in ((ours, OURS, 0.09), (ours, ETS, 0.1), (known, BEGUN, known_error))
        ]
        (claim,) = (one for one in claims(figures) if "AutoETS" in one.name)
        return claim.cause

    assert "no method reaches it" in cause(0.071)
    lucky = replace(ours, crossed=10, found=3, foreseeable=6, foreseen=3)
    found = {one.name: one.cause for one in claims([lucky]) if "soft crossings" in one.name}
    assert [("leads to 6 of them" in cause) for cause in found.values()] == [True, False]
    assert cause(0.069) == "later events alone make 0.69 x"
