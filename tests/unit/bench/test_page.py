"""The page and the tables: both say the same."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console

from bench.claims import judge
from bench.loads import Client
from bench.page import Machine, page, tables
from bench.results import Case, Results, Throttled, Throughput
from tests.unit.bench.test_claims import FENCE, GOVERNOR, PEER

MACHINE = Machine("2026-11-21", 2, (1.0, 2.0, 3.0), (4.0, 5.0, 6.0), "4.3.0", "0.1.0", "peer 1", 12.3)
RESULTS = Results(
    throttled=(Throttled(Case("governor W=3", Client.LIBRDKAFKA, 20), 0.3, 0.05, 20e6, None, 12.5, 1.04),),
    paused=(GOVERNOR, FENCE, PEER),
    throughput=tuple(
        Throughput(Case(system, Client.JAVA, 20), (100e6, 120e6), (5.0, 7.0)) for system in ("stock", "fence")
    ),
)


def test_the_page_says_where_when_and_what():
    text = page(RESULTS, judge(RESULTS), MACHINE)
    assert "Run on 2026-11-21: 2 cores, load average 1.0 2.0 3.0 before and 4.0 5.0 6.0 after" in text
    assert "| governor W=3, librdkafka x 20 | 0.3→0.05 | 20.0 | - | 12.5 | 1.04 |" in text
    assert "| fence, Java x 1 | 5 s | 1.0 MB | 0.0 MB | 0.8 s | 0.8 s | 0 |" in text
    assert "| peer, Java x 1 | 5 s | 40.0 MB | 30.0 MB | > 12 s | > 12 s | 0 |" in text
    assert "| stock, Java x 20 | 100 120 | 110 | 6.00 |" in text


def test_a_pause_that_began_with_nothing_flowing_is_marked():
    results = Results(paused=(replace(PEER, rate_before=0.0, landed_bytes=0, landed_late_bytes=0),))
    assert "| peer, Java x 1 | 5 s | 0.0 MB ? | 0.0 MB |" in page(results, judge(results), MACHINE)


def test_missed_aims_are_listed_with_their_cause_and_met_ones_are_not():
    text = page(RESULTS, judge(RESULTS), MACHINE)
    missed = text.split("Missed aims", 1)[1].split("## ", 1)[0]
    assert "no client is silent for longer than D + poll: 0 of 1; worst 12.5 s" in missed
    assert "within 1.5 s" not in missed


def test_each_row_has_as_many_cells_as_its_head():
    lines = page(RESULTS, judge(RESULTS), MACHINE).splitlines()
    blocks: list[list[int]] = [[]]
    for line in lines:
        if line.startswith("|"):
            blocks[-1].append(line.count("|"))
        elif blocks[-1]:
            blocks.append([])
    assert len([block for block in blocks if block]) == 6
    assert all(len(set(block)) == 1 for block in blocks if block)


def test_the_terminal_shows_every_figure_in_80_columns():
    console = Console(width=80, file=StringIO())
    for table in tables(RESULTS, judge(RESULTS)):
        console.print(table)
    assert isinstance(console.file, StringIO)
    shown = console.file.getvalue()
    assert max(len(line) for line in shown.splitlines()) <= 80
    for figure in ("12.5", "1.04", "40.0 MB", "> 12 s", "0.0 MB", "missed", "holds"):
        assert figure in shown, figure
