"""`make bench`: how producers are held by kquota and by the peer plug-in, and what kquota costs."""

from __future__ import annotations

import subprocess
from statistics import median

from bench.bounds import overshoot_bound_bytes
from bench.claims import claims
from bench.figures import KINDS, Overshoot, megabytes
from bench.harness.bench import REPOSITORY, Bench
from bench.harness.command import main
from bench.harness.results import of
from bench.maven import PEER
from bench.plan import Brokers, measurements
from bench.plots import draw_overshoots
from bench.summaries import changes, pauses

_PLOT = REPOSITORY / "docs" / "img" / "overshoot.svg"


def _versions(brokers: Brokers) -> tuple[str, ...]:
    output = subprocess.run(
        [brokers.runtime.java, "-version"], capture_output=True, text=True, check=True
    ).stderr
    return output.splitlines()[0].replace('"', ""), f"Kafka {brokers.runtime.version}", PEER


BENCH = Bench(
    command="make bench",
    page=REPOSITORY / "docs" / "bench.md",
    results=REPOSITORY / "bench" / "results.jsonl",
    kinds=KINDS,
    open=Brokers,
    versions=_versions,
    measurements=measurements,
    template="page.md.j2",
    claims=claims,
    functions={
        "megabytes": megabytes,
        "overshoot_bound_bytes": overshoot_bound_bytes,
        "median": median,
        "pauses": pauses,
        "changes": changes,
    },
    draw=lambda figures: draw_overshoots(of(Overshoot, figures), _PLOT),
)

if __name__ == "__main__":
    main(BENCH)
