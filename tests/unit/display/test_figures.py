"""Sizes and ages in few characters, and the bar of a volume."""

from __future__ import annotations

import pytest

from kquota.display.bar import usage_bar
from kquota.display.figures import age_text, size_text, state_text, until_text
from tests.unit.policy.situations import GB

VOLUME = {
    "capacity_bytes": 100 * GB,
    "consumed_bytes": 50 * GB,
    "soft_bytes": 80 * GB,
    "hard_bytes": 90 * GB,
    "headroom": 1.0,
}


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0"), (999, "999"), (999.6, "1.00K"), (12_345_678, "12.3M"), (1_500_000_000_000, "1.50T")],
)
def test_sizes_in_five_characters(size: float, text: str) -> None:
    assert size_text(size) == text


def test_no_size_takes_more_than_five_characters() -> None:
    for exponent in range(19):
        for digits in (1, 1.5, 9.99, 9.995, 9.999):
            assert len(size_text(digits * 10**exponent)) <= 5


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0.44, "0.4s"), (12, "12s"), (119, "119s"), (180, "3m"), (7200, "2h"), (432_000, "5d")],
)
def test_ages_in_five_characters(seconds: float | None, text: str) -> None:
    assert age_text(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(0, "now"), (None, "-"), (90, "90s"), (1e12, ">999d")])
def test_times_that_come(seconds: float | None, text: str) -> None:
    assert until_text(seconds) == text


def test_only_a_throttle_says_how_much_is_left() -> None:
    assert [state_text(state, 0.25) for state in ("OPEN", "THROTTLE", "PAUSE")] == [
        "OPEN",
        "THROTTLE 0.25",
        "PAUSE",
    ]


def test_the_bar_marks_both_limits() -> None:
    assert usage_bar(VOLUME, 10, ascii_only=True).plain == "#####...:|"
    assert usage_bar(VOLUME | {"consumed_bytes": 100 * GB}, 10, ascii_only=True).plain == "########:|"
    assert usage_bar(VOLUME | {"capacity_bytes": 0}, 10).plain == "?" * 10


def test_the_bar_shows_eighths_of_a_cell() -> None:
    assert usage_bar(VOLUME | {"consumed_bytes": 52.5 * GB}, 10).plain == "█████▎··┆┃"
    for consumed in range(0, 101):
        assert usage_bar(VOLUME | {"consumed_bytes": consumed * GB}, 10).cell_len == 10
