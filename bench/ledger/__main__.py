"""`make ledger`: the answers to producers, compared with the records in the log."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench.bed import Bed, open_bed, versions
from bench.harness.bench import REPOSITORY, Bench, Measurement, Profile
from bench.harness.command import main
from bench.ledger.campaign import Run, keep_books
from bench.ledger.figures import KINDS, Trouble, claims
from kquota.policy.decision import Scope

FAULTS = (Trouble.NETWORK, Trouble.PARTITION, Trouble.DISK, Trouble.AGENTS)
RUNS = (
    Run(fence=True),
    Run(fence=False),
    Run(fence=True, trouble=Trouble.BROKERS_KILLED),
    Run(fence=False, trouble=Trouble.BROKERS_KILLED),
    Run(fence=True, scope=Scope.CLUSTER),
    Run(fence=True, patience_seconds=4.0),
    # Their faults take most of the time.
    *(
        Run(fence=fence, scope=scope, trouble=trouble, state_seconds=4.0)
        for fence, scope in ((True, Scope.VOLUME), (False, Scope.CLUSTER))
        for trouble in FAULTS
    ),
)


def measurements(profile: Profile) -> Iterator[Measurement[Bed]]:
    """One for each run; a small profile has the first alone, with one short cycle."""
    runs = (Run(fence=True, state_seconds=3.0, cycles=1),) if profile is Profile.SMALL else RUNS
    for run in runs:
        yield Measurement(run.name, "ledger", partial(_run, run))


def _run(run: Run, bed: Bed) -> list[object]:
    return [*keep_books(bed.runtime, run, bed.report)]


BENCH = Bench(
    command="make ledger",
    page=REPOSITORY / "docs" / "ledger.md",
    results=REPOSITORY / "bench" / "ledger" / "results.jsonl",
    kinds=KINDS,
    open=open_bed,
    versions=versions,
    measurements=measurements,
    template="ledger/page.md.j2",
    claims=claims,
)

if __name__ == "__main__":
    main(BENCH)
