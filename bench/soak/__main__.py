"""`make soak`: an hour of faults by lot on a cluster under load, every record accounted for."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from bench.bed import Bed, open_bed, versions
from bench.harness.bench import REPOSITORY, Bench, Measurement, Profile
from bench.harness.command import main
from bench.soak.campaign import soak
from bench.soak.figures import KINDS, claims

_MINUTES = {Profile.SMALL: 2.0}
_USUAL_MINUTES = 60.0


def measurements(profile: Profile) -> Iterator[Measurement[Bed]]:
    """The campaign; SOAK_MINUTES and SOAK_SEED in the environment say how long and with which lots."""
    minutes = float(os.environ.get("SOAK_MINUTES") or _MINUTES.get(profile, _USUAL_MINUTES))
    seed = int(os.environ.get("SOAK_SEED") or time.time())
    yield Measurement("soak", "soak", lambda bed: soak(bed.runtime, minutes, seed, bed.report))


BENCH = Bench(
    command="make soak",
    page=REPOSITORY / "docs" / "soak.md",
    results=REPOSITORY / "bench" / "soak" / "results.jsonl",
    kinds=KINDS,
    open=open_bed,
    versions=versions,
    measurements=measurements,
    template="soak/page.md.j2",
    claims=claims,
)

if __name__ == "__main__":
    main(BENCH)
