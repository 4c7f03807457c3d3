"""The pages of the benches: what was saved, and nothing that a reader could take for more."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench.__main__ import BENCH
from bench.harness.bench import Bench, Profile
from bench.harness.command import judge
from bench.harness.page import page
from bench.harness.results import Saved, Store
from bench.ledger.__main__ import BENCH as LEDGER
from bench.scale.__main__ import BENCH as SCALE
from tests.unit.bench.measurements import FENCE, PEER, STEP


@pytest.mark.parametrize("bench", [BENCH, SCALE, LEDGER], ids=["bench", "scale", "ledger"])
def test_the_saved_results_give_the_page_of_this_repository_and_every_claim_holds(
    bench: Bench[Any], tmp_path: Path
) -> None:
    copy = replace(bench, page=tmp_path / "page.md", draw=lambda _figures: None)
    names = [entry.name for entry in bench.measurements(Profile.FULL)]
    saved = Store(bench.results, bench.kinds).load(names)
    missing = sorted(set(names) - {entry.name for entry in saved}, key=names.index)
    console = Console(width=80, file=StringIO())
    assert not judge(copy, saved, missing, console, writes=True)
    assert copy.page.read_text("utf-8") == bench.page.read_text("utf-8")
    assert len(set(names)) == len(names)
    assert isinstance(console.file, StringIO)
    assert max(map(len, console.file.getvalue().splitlines())) <= 80


def shown(*figures: object, machine: str = "a machine") -> str:
    saved = Saved("all", "2026-11-21T10:00:00+00:00", 738.0, 1.5, machine, figures)
    return page(BENCH.template, "make bench", [saved], [], **BENCH.functions)


def test_a_pause_that_began_with_nothing_flowing_does_not_count() -> None:
    still = replace(PEER, rate_before=0.0, landed_bytes=0, landed_late_bytes=0)
    assert "| peer | Java | 5 | 1 | 0 | 40.0%, 40.0% | 30.0 MB | -, - | 0 |" in shown(PEER, still)
    assert "| peer |" not in shown(still).split("## PAUSE")[1]


def test_pauses_of_a_kind_are_shown_by_their_median_and_their_worst() -> None:
    longer = (replace(FENCE, seconds=seconds, resumed_seconds=(seconds,)) for seconds in (30.0, 60.0, 120.0))
    open_door = replace(FENCE, landed_bytes=60_000_000, resumed_seconds=(0.4,), failed_records=3)
    text = shown(FENCE, open_door, *longer)
    assert "| fence | Java | 5 | 2 | 1 | 30.5%, 60.0% | 0.0 MB | 0.6, 0.8 | 3 |" in text
    assert "| fence | Java | 30 to 120 | 3 | 0 | 0.1%, 0.2% | 0.0 MB | 60.0, 120.0 | 0 |" in text


def test_changes_of_the_factor_are_shown_by_what_is_nearest_and_furthest_from_the_target() -> None:
    ramp = replace(STEP, ramp_seconds=20.0, mean_ratio=0.8, fairness=None, longest_silence_seconds=3.0)
    small = replace(STEP, factor=0.05, mean_ratio=None)
    text = shown(replace(STEP, fairness=0.9), ramp, small)
    assert "| governor | Java | from 0.3 | 2 | 0.80, 0.95, 1.10 | 2.0, 3.0 | 0.90, 0.90 |" in text
    assert "| governor | Java | below 0.3 | 1 | - | 1.0, 1.0 | - |" in text


def test_each_part_of_the_machines_names_is_there_once() -> None:
    assert "in 12 minutes. 2 cores, Linux 6.1, Kafka 4.3.\n" in shown(machine="2 cores, Linux 6.1, Kafka 4.3")
    named = [
        Saved(n, "2026-11-21T10:00:00+00:00", 1.0, 1.5, f"2 cores, Kafka {n}", (PEER,)) for n in ("4", "5")
    ]
    assert "2 cores, Kafka 4, Kafka 5." in page(BENCH.template, "make bench", named, [], **BENCH.functions)
