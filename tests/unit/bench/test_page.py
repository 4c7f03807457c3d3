"""The pages of the benches: all that was saved, and nothing that a reader could take for more."""

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
from tests.unit.bench.measurements import PEER


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


def test_a_pause_that_began_with_nothing_flowing_is_marked() -> None:
    still = replace(PEER, rate_before=0.0, landed_bytes=0, landed_late_bytes=0)
    saved = Saved("all", "2026-11-21T10:00:00+00:00", 738.0, 1.5, "a machine", (still,))
    text = page(BENCH.template, "make bench", [saved], [], **BENCH.functions)
    assert "| peer | Java | 1 | 5 s | 0.0 | 0.0 MB ? | 0.0 MB |" in text
