"""The page and the tables: both have the same figures."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console

from bench.claims import claims
from bench.harness.page import claims_table, page
from bench.harness.results import Saved
from bench.tables import HEAD, tables
from tests.unit.bench.measurements import BURST, FIGURES, MACHINE, PEER


def written(*figures: object, missing: tuple[str, ...] = ()) -> str:
    shown = figures or FIGURES
    saved = Saved("all", "2026-11-21T10:00:00+00:00", 738.0, 1.5, MACHINE, shown)
    return page(HEAD, "make bench", [saved], list(claims(shown)), tables(shown), missing)


def test_the_page_says_where_when_and_what():
    text = written()
    assert "Measured by `make bench` on 2026-11-21, in 12 minutes." in text
    assert f"{MACHINE}.\n" in text
    for row in (
        "| governor W=3 | librdkafka | 20 | 1→0.3 | 20.0 | 4.0 | 12.5 | 1.10 |",
        "| fence | Java | 1 | 5 s | 20.0 | 1.0 MB | 0.0 MB | 0.8 s | 0.8 s | 0 |",
        "| peer | Java | 1 | 5 s | 20.0 | 40.0 MB | 30.0 MB | > 12 s | > 12 s | 0 |",
        "| stock | Java | 20 | 100 120 | 110 | 1.00 |",
        "| kquota | 3 | 3 | 0.30 | 0.90 | 0.30 | 0.30 |",
        "| governor W=11 | 1.0 MB | 50 MB/s | 0.50 | 100.0 MB | 372.0 MB |",
        "| fence | 1.0 MB | 50 MB/s | 0.50 | 20.0 MB | 304.0 MB |",
        "| stock | 250 ± 5 | 300 ± 5 |",
        "| kquota | 275 ± 5 | - |",
        "| THROTTLE | 10,000 | 3.50 |",
        "| 1 | 1.2% | 50 |",
    ):
        assert row in text, row


def test_what_was_not_measured_is_named():
    assert "Not yet measured: `pause-java-1-5s`." in written(missing=("pause-java-1-5s",))
    assert "Not yet measured" not in written()


def test_a_pause_that_began_with_nothing_flowing_is_marked():
    still = replace(PEER, rate_before=0.0, landed_bytes=0, landed_late_bytes=0)
    assert "| peer | Java | 1 | 5 s | 0.0 | 0.0 MB ? | 0.0 MB |" in written(still)


def test_a_hard_limit_that_was_not_reached_is_no_overshoot():
    slowed = replace(BURST, reached=False, past_hard_bytes=-5_000_000, pause_seconds=0.0)
    assert "| governor W=11 | 1.0 MB | 50 MB/s | 0.50 | not reached |" in written(slowed)


def test_missed_aims_are_listed_with_their_cause_and_met_ones_are_not():
    missed = written().split("What is missed", 1)[1].split("## ", 1)[0]
    assert "no client is silent for longer than D + poll: 0 of 1; worst 12.5 s" in missed
    assert "Next: smaller requests" in missed
    assert "every client is back within 1.5 s" not in missed


def test_each_row_has_as_many_cells_as_its_head():
    blocks: list[list[int]] = [[]]
    for line in written().splitlines():
        if line.startswith("|"):
            blocks[-1].append(line.count("|"))
        elif blocks[-1]:
            blocks.append([])
    assert len([block for block in blocks if block]) == 12
    assert all(len(set(block)) == 1 for block in blocks if block)


def test_the_terminal_shows_every_figure_in_80_columns():
    console = Console(width=80, file=StringIO())
    for table in (*tables(FIGURES), claims_table(claims(FIGURES))):
        console.print(table.terminal())
    assert isinstance(console.file, StringIO)
    shown = console.file.getvalue()
    assert max(len(line) for line in shown.splitlines()) <= 80
    for figure in ("12.5", "1.10", "372.0", "missed", "holds"):
        assert figure in shown, figure
