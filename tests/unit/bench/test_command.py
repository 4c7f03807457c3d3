"""The commands of all benches: they measure, save results, and judge."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from bench.harness.bench import Bench, Measurement, Profile
from bench.harness.claims import Claim
from bench.harness.command import judge, measure
from bench.harness.results import Saved, Store, UnreadableResults, of
from bench.scale.figures import ClientCost


def broken(_shared: None) -> list[object]:
    raise OSError("no disk")


def bench(folder: Path) -> Bench[None]:
    return Bench(
        command="make this",
        page=folder / "page.md",
        results=folder / "results.jsonl",
        kinds=(ClientCost,),
        open=lambda _say: nullcontext(),
        versions=lambda _shared: ["Kafka 4"],
        measurements=lambda _profile: [
            Measurement("broken", "all", broken),
            Measurement("works", "all", lambda _shared: [ClientCost(3, 12, 24, 2**20, 0.01, 14, 2**21)]),
        ],
        template="scale/page.md.j2",
        claims=lambda figures: [
            Claim("threads", one.threads, "<=", 10, str(one.threads), asserted=True)
            for one in of(ClientCost, figures)
        ],
    )


def test_a_measurement_that_fails_spares_the_others_and_a_broken_claim_fails(tmp_path: Path) -> None:
    this, said = bench(tmp_path), list[str]()
    store = Store(this.results, this.kinds)
    assert measure(this, list(this.measurements(Profile.USUAL)), store, None, said.append) == ["broken"]
    assert any("OSError: no disk" in line for line in said)
    saved = Store(this.results, this.kinds).load(["broken", "works"])
    assert [entry.name for entry in saved] == ["works"]
    console = Console(file=StringIO())
    assert judge(this, saved, ["broken"], console, writes=True)
    page = this.page.read_text("utf-8")
    assert "| threads | 12 | BROKEN |" in page
    assert "Not yet measured: `broken`." in page
    assert page.startswith("# Large clusters, and whole fleets over days\n\n<!-- Written by `make this`.")
    assert "| 3 | 12 | 14 | 24 | 1 | 2 | 1.0% |" in page


def test_a_repeated_measurement_replaces_the_first_and_a_line_of_another_version_is_named(
    tmp_path: Path,
) -> None:
    path = tmp_path / "results" / "bench.jsonl"
    first = Saved(
        "first", "2026-11-21T10:00:00+00:00", 12.5, 1.5, "a machine", (ClientCost(3, 1, 2, 3, 0.1, 1, 3),)
    )
    other, again = replace(first, name="other"), replace(first, figures=())
    for saved in (first, other, again):
        Store(path, (ClientCost,)).save(saved)
    assert Store(path, (ClientCost,)).load(["first", "missing", "other"]) == [again, other]
    assert list(path.parent.iterdir()) == [path]
    with path.open("a") as file:
        file.write('{"name": "pause"}\n')
    with pytest.raises(UnreadableResults, match=rf"^{path}:3: not results of this version"):
        Store(path, (ClientCost,))
