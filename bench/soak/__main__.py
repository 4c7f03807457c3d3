"""`make soak`: an hour of faults by lot on a cluster under load, every record accounted for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from bench.harness.bench import REPOSITORY, Bench, Measurement, Profile
from bench.harness.command import main
from bench.soak.campaign import soak
from bench.soak.figures import KINDS, claims
from testbed.loopback.runtime import KafkaRuntime, ensure_kafka_runtime
from testbed.loopback.volumes import require_loop_volumes

_MINUTES = {Profile.SMALL: 2.0}
_USUAL_MINUTES = 60.0


@dataclass(frozen=True, slots=True)
class Bed:
    """The Kafka of the campaign, and where its progress is shown."""

    runtime: KafkaRuntime
    report: Callable[[str], None]


def measurements(profile: Profile) -> Iterator[Measurement[Bed]]:
    """The campaign; SOAK_MINUTES and SOAK_SEED in the environment say how long and with which lots."""
    minutes = float(os.environ.get("SOAK_MINUTES") or _MINUTES.get(profile, _USUAL_MINUTES))
    seed = int(os.environ.get("SOAK_SEED") or time.time())
    yield Measurement("soak", "soak", lambda bed: soak(bed.runtime, minutes, seed, bed.report))


def _open(report: Callable[[str], None]) -> AbstractContextManager[Bed]:
    require_loop_volumes()
    return nullcontext(Bed(ensure_kafka_runtime(report=report), report))


BENCH = Bench(
    command="make soak",
    page=REPOSITORY / "docs" / "soak.md",
    results=REPOSITORY / "bench" / "soak" / "results.jsonl",
    kinds=KINDS,
    open=_open,
    versions=lambda bed: (f"Kafka {bed.runtime.version}",),
    measurements=measurements,
    template="soak/page.md.j2",
    claims=claims,
)

if __name__ == "__main__":
    main(BENCH)
