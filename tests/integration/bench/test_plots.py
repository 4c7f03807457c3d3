"""The plots: the same for the same results. matplotlib looks for fonts with a process of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from bench.plots import draw_course, draw_overshoots
from tests.unit.bench.measurements import BURST
from tests.unit.bench.test_fleet import BY_NAME, one_day


def test_the_same_course_is_drawn_the_same_with_both_limits(tmp_path: Path) -> None:
    course = one_day(BY_NAME["growth"])
    for name in ("one.svg", "two.svg"):
        draw_course(course, tmp_path / name)
    drawn = (tmp_path / "one.svg").read_text("utf-8")
    assert drawn == (tmp_path / "two.svg").read_text("utf-8")
    assert {"soft limit", "hard limit", "fullest volume", "throttle factor"} <= set(
        ElementTree.fromstring(drawn).itertext()
    )


def test_the_plot_is_the_same_for_the_same_results_and_names_what_it_shows(tmp_path: Path):
    for name in ("first.svg", "second.svg"):
        draw_overshoots([BURST, replace(BURST, fence=True)], tmp_path / name)
    first, second = ((tmp_path / name).read_text() for name in ("first.svg", "second.svg"))
    assert first == second
    for text in ("zone 0.0 s, W = 11 s", "zone 0.0 s, fence", "seconds from the breach of the hard limit"):
        assert text in first, text
