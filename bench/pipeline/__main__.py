"""`make bench-spark`: the cost of the pipeline, compared with DuckDB on the same work in the same run."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import duckdb
import pyspark

from bench.harness.bench import REPOSITORY, Bench, Measurement, Profile
from bench.harness.command import main
from bench.pipeline import closed
from bench.pipeline.arrays import measure_arrays
from bench.pipeline.commands import measure_commands, measure_nothing_due
from bench.pipeline.cost import Cost
from bench.pipeline.data import Fleet, make
from bench.pipeline.engines import not_compared
from bench.pipeline.figures import HELD_OUT, KINDS, Foresight, claims
from bench.pipeline.foretold import judge
from bench.pipeline.ingest import measure_ingest
from bench.pipeline.lane import measure_engine
from bench.pipeline.origin import rows
from bench.pipeline.stored import StoredFleet
from bench.pipeline.tenth import TENTH, measure_tenth
from bench.pipeline.work import CLOSING, HOURS, WORKS
from testbed.loopback.runtime import DEFAULT_KAFKA_VERSION

_SAMPLES = REPOSITORY / "build" / "bench-spark"
_CORES, _LONG_DAYS = 2, 30


def measurements(profile: Profile) -> Iterator[Measurement[Path]]:
    """Yield them; engines that are compared are measured one right after the other."""
    small = profile is Profile.SMALL  # to try the command; its figures have little meaning
    records, share = (20_000, 0.1) if small else (500_000, 1.0)
    yield Measurement("ingest", "ingest", lambda _: [measure_ingest(records, _CORES)])
    for name in HELD_OUT:
        yield Measurement(f"forecast-{name}", "forecast", partial(_foresight, name, share))
    cluster = closed.Fleet(brokers=10, days=4, policies=8) if small else closed.Fleet()
    yield Measurement(
        "closed-loop", "closed-loop", lambda folder: [closed.measure_job(folder / "closed", cluster, _CORES)]
    )
    yield Measurement("closed-loop-arrays", "closed-loop", lambda _: [measure_arrays(cluster)])
    fleet, days = (Fleet(brokers=100), 2) if small else (Fleet(), 3)
    yield _lane(fleet, "spark", days, WORKS)
    yield _lane(fleet, "duckdb", days, WORKS)
    yield _lane(fleet, "spark", days, WORKS, cores=1)
    yield _lane(fleet, "spark", 2 * days, WORKS)
    for name, brokers, some_days, work in (("hours", 300, 3, HOURS), ("closing", 100, 1, CLOSING)):
        part = Fleet(brokers=20 if small else brokers)
        yield Measurement(name, "upkeep", partial(_engine, part, "spark", some_days, (work,), _CORES))
    stored = StoredFleet(brokers=5, days=2) if small else StoredFleet(brokers=100, days=8)
    yield _commands("commands", stored)
    few = StoredFleet(brokers=5, days=3)  # it reads no row
    yield Measurement(
        "nothing-due", "commands", lambda folder: measure_nothing_due(folder / "nothing-due", few, _CORES)
    )
    # Neither is measured unless it is asked for, or with all: each takes more than a quarter of an hour.
    tenth = StoredFleet(brokers=10, volumes=12, days=30, sample_seconds=600) if small else TENTH
    if profile is not Profile.USUAL:
        yield Measurement("tenth", "tenth", lambda folder: [measure_tenth(folder / "tenth", tenth)])
    if profile is Profile.FULL:
        yield _commands("commands-1000", StoredFleet(brokers=1000, days=1))
        yield _lane(fleet, "spark", _LONG_DAYS, WORKS)
        yield _lane(fleet, "duckdb", _LONG_DAYS, WORKS)


def _lane(
    fleet: Fleet, engine: str, days: int, works: tuple[str, ...], *, cores: int = _CORES
) -> Measurement[Path]:
    return Measurement(
        f"{engine}-{cores}-cores-{days}-days",
        "engines",
        partial(_engine, fleet, engine, days, works, cores),
    )


def _commands(name: str, fleet: StoredFleet) -> Measurement[Path]:
    return Measurement(name, "commands", lambda folder: measure_commands(folder / name, fleet, _CORES))


def _engine(
    fleet: Fleet, engine: str, days: int, works: tuple[str, ...], cores: int, all_samples: Path
) -> list[Cost]:
    samples = all_samples / f"{fleet.brokers}-brokers"
    make(samples, fleet, days)
    return measure_engine(engine, cores, samples, fleet, days, works)


def _foresight(fleet: str, share: float, _samples: Path) -> list[Foresight]:
    # Spark ends with its process: the next measurement starts its own.
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(judge, fleet, share).result()


@contextmanager
def _samples(_say: Callable[[str], None]) -> Iterator[Path]:
    try:
        yield _SAMPLES
    finally:
        shutil.rmtree(_SAMPLES, ignore_errors=True)


BENCH = Bench(
    command="make bench-spark",
    page=REPOSITORY / "docs" / "bench-spark.md",
    results=REPOSITORY / "bench" / "pipeline" / "results.jsonl",
    kinds=KINDS,
    open=_samples,
    versions=lambda _samples: [
        f"Spark {pyspark.__version__}",
        f"DuckDB {duckdb.__version__}",
        f"Kafka {DEFAULT_KAFKA_VERSION}",
    ],
    measurements=measurements,
    template="pipeline/page.md.j2",
    claims=claims,
    functions={"rows": rows, "not_compared": not_compared},
)

if __name__ == "__main__":
    main(BENCH)
