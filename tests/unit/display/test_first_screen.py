"""The first screen of a large cluster: what decides and what is wrong comes first, the rest is counted."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from kquota.display.first_screen import FEW_BROKERS
from kquota.display.status_table import Order
from kquota.display.status_view import Looks, first_view, status_view
from tests.unit.display.documents import crowded, status_of, troubled
from tests.unit.display.test_status_view import console_of, printed
from tests.unit.policy.situations import free, order, usage

OWN, SOFT, FULL, STALE, ORDERED, OTHERWISE, MISSING = 1, 17, 230, 77, 9, 55, 501


@cache
def large(applied: str = "PAUSE") -> dict[str, Any]:
    """Five hundred brokers with eight volumes: 230 full, 17 over the soft limit, 77 silent, 501 missing."""
    records = []
    for number in range(1, 501):
        volumes = [free(40 - (number + volume) % 10, f"/dev/sd{'abcdefgh'[volume]}1") for volume in range(8)]
        if number == SOFT:
            volumes[3:5] = [free(15, "/dev/sdd1"), free(17, "/dev/sde1")]
        if number == FULL:
            volumes[6] = free(5, "/dev/sdg1")
        own = {"State": "OPEN" if number == OTHERWISE else applied, "Factor": 0.0, "Mode": "enforce"}
        age = 90 if number == STALE else 1
        records.append((str(number), usage(*volumes, Applied=own, age_seconds=age)))
    records.append((f"quarantine/{ORDERED}", order()))
    return status_of(*records, active=frozenset(range(1, MISSING + 1)))


def screen(
    document: dict[str, Any],
    columns: int = 80,
    lines: int = 40,
    looks: Looks | None = None,
    *,
    pipe: bool = False,
) -> str:
    console = console_of(columns, lines, force_terminal=not pipe, color_system=None)
    return printed(console, first_view(document, console, looks or Looks()))


def named(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"^(\d+)  ", text, re.MULTILINE)]


@pytest.mark.parametrize("pipe", [False, True])
def test_what_decides_and_what_is_wrong_comes_first_and_the_rest_is_counted(pipe: bool) -> None:
    text = screen(large(), pipe=pipe)
    assert named(text) == [OWN, FULL, SOFT, STALE, MISSING, ORDERED, OTHERWISE]
    pointed = [line for line in text.splitlines() if "▶" in line]
    assert [line.split()[0] for line in pointed] == [str(FULL)]
    assert "/dev/sdg1" in pointed[0]
    rows = [line for line in text.splitlines() if "/dev/sd" in line and "┃" in line]
    assert len(rows) == 5, rows  # one of its own, the full one, both of 17, one of 55
    assert "  494 brokers are OPEN and fresh; --all shows all lines" in text
    assert "not shown" not in text


@pytest.mark.parametrize("columns", [60, 80, 136])
@pytest.mark.parametrize("lines", [28, 60])
@pytest.mark.parametrize("applied", ["PAUSE", "OPEN"])
def test_it_fits_the_screen_with_a_line_for_the_prompt(columns: int, lines: int, applied: str) -> None:
    text = screen(large(applied), columns, lines)
    assert len(text.splitlines()) < lines
    assert max(map(len, text.splitlines())) <= columns
    assert named(text)[:2] == [OWN, FULL]


def test_what_does_not_fit_is_counted_by_what_is_the_matter() -> None:
    text = " ".join(screen(large("OPEN"), lines=18).split())
    assert named(screen(large("OPEN"), lines=18)) == [OWN, FULL, SOFT]
    assert (
        "not shown: 1 more of broker 17, 2 brokers silent or not known, 1 broker with a remark,"
        " 495 brokers not known to apply the decision; --all shows all lines"
    ) in text
    assert "OPEN and fresh" not in text


def test_without_a_screen_it_shows_a_fixed_number_of_brokers() -> None:
    assert len(named(screen(large("OPEN"), pipe=True))) == FEW_BROKERS


@pytest.mark.parametrize("pipe", [False, True])
@pytest.mark.parametrize("document", [troubled(), crowded(FEW_BROKERS)])
def test_a_small_cluster_is_shown_whole(document: dict[str, Any], pipe: bool) -> None:
    console = console_of(80, 10, force_terminal=not pipe, color_system=None)
    assert screen(document, lines=10, pipe=pipe) == printed(console, status_view(document, 80))


def test_a_screen_that_has_room_for_all_lines_shows_all() -> None:
    text = screen(crowded(21), lines=100)
    assert len([line for line in text.splitlines() if "┃" in line]) == 63
    assert "--all" not in text


def test_filter_and_order_are_those_of_watch() -> None:
    over = screen(large(), looks=Looks(troubled_only=True))
    assert named(over) == [ORDERED, SOFT, STALE, FULL, MISSING]
    assert "--all" not in over
    by_headroom = screen(crowded(100), lines=20, looks=Looks(Order.HEADROOM))
    assert named(by_headroom)[0] == 99
    assert "of 300 lines; --all shows all lines" in by_headroom
    piped = screen(crowded(100), looks=Looks(Order.HEADROOM), pipe=True)
    assert len(set(named(piped))) == FEW_BROKERS


def test_the_first_screen_costs_a_fraction_of_all_lines() -> None:
    document = large()

    def seconds(draw: Callable[[], object]) -> float:
        begun = time.process_time()
        draw()
        return time.process_time() - begun

    def whole() -> None:
        printed(console_of(80), status_view(document, 80))

    assert min(seconds(lambda: screen(document)) for _ in range(3)) < seconds(whole) / 3
