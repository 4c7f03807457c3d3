"""`make bench`: how producers are held by kquota and by the peer plug-in, and what kquota costs."""

from __future__ import annotations

import subprocess

from bench.claims import claims
from bench.figures import KINDS, Overshoot
from bench.harness.bench import REPOSITORY, Bench
from bench.harness.command import main
from bench.harness.results import of
from bench.maven import PEER
from bench.plan import Brokers, measurements
from bench.plots import draw_overshoots
from bench.tables import HEAD, tables

_PLOT = REPOSITORY / "docs" / "img" / "overshoot.svg"


def _versions(brokers: Brokers) -> tuple[str, ...]:
    told = subprocess.run(
        [brokers.runtime.java, "-version"], capture_output=True, text=True, check=True
    ).stderr
    return told.splitlines()[0].replace('"', ""), f"Kafka {brokers.runtime.version}", PEER


BENCH = Bench(
    command="make bench",
    page=REPOSITORY / "docs" / "bench.md",
    results=REPOSITORY / "bench" / "results.jsonl",
    kinds=KINDS,
    open=Brokers,
    versions=_versions,
    measurements=measurements,
    head=HEAD,
    claims=claims,
    tables=tables,
    draw=lambda figures: draw_overshoots(
        of(Overshoot, figures), REPOSITORY / "docs" / "img" / "overshoot.svg"
    ),
)

if __name__ == "__main__":
    main(BENCH)
