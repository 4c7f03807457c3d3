"""`make ledger`: the answers to producers, compared with the records in the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

from bench.harness.bench import REPOSITORY, Bench, Measurement, Profile
from bench.harness.command import main
from bench.ledger.campaign import Run, keep_books
from bench.ledger.figures import KINDS, Trouble, claims
from kquota.core.decision import Scope
from testbed.loopback.runtime import KafkaRuntime, ensure_kafka_runtime
from testbed.loopback.volumes import require_loop_volumes

RUNS = (
    Run(fence=True),
    Run(fence=False),
    Run(fence=True, trouble=Trouble.BROKERS_KILLED),
    Run(fence=False, trouble=Trouble.BROKERS_KILLED),
    Run(fence=True, scope=Scope.CLUSTER),
    Run(fence=True, patience_seconds=4.0),
)


@dataclass(frozen=True, slots=True)
class Books:
    """Common to all runs."""

    runtime: KafkaRuntime
    report: Callable[[str], None]


def measurements(profile: Profile) -> Iterator[Measurement[Books]]:
    """One for each run; a small profile has the first alone, with one short cycle."""
    runs = (Run(fence=True, state_seconds=3.0, cycles=1),) if profile is Profile.SMALL else RUNS
    for run in runs:
        yield Measurement(run.name, "ledger", partial(_run, run))


def _run(run: Run, books: Books) -> list[object]:
    return [*keep_books(books.runtime, run, books.report)]


def _open(report: Callable[[str], None]) -> AbstractContextManager[Books]:
    require_loop_volumes()
    return nullcontext(Books(ensure_kafka_runtime(report=report), report))


BENCH = Bench(
    command="make ledger",
    page=REPOSITORY / "docs" / "ledger.md",
    results=REPOSITORY / "bench" / "ledger" / "results.jsonl",
    kinds=KINDS,
    open=_open,
    versions=lambda books: (f"Kafka {books.runtime.version}",),
    measurements=measurements,
    template="ledger/page.md.j2",
    claims=claims,
)

if __name__ == "__main__":
    main(BENCH)
