"""`make bench-spark`: the cost of the pipeline, compared with DuckDB on the same work in the same run."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyspark

from bench.harness.bench import REPOSITORY, Bench, Measurement, Profile
from bench.harness.command import main
from bench.pipeline.data import Fleet, make
from bench.pipeline.figures import KINDS, Accuracy, Cost, claims
from bench.pipeline.foretold import measure_accuracy
from bench.pipeline.ingest import measure_ingest
from bench.pipeline.lane import measure_engine
from bench.pipeline.work import PARTS, REGRESSION, REPLAY, WORKS
from kquota_pipeline.session import start_session
from testbed.loopback.runtime import DEFAULT_KAFKA_VERSION

_SAMPLES = REPOSITORY / "build" / "bench-spark"
_CORES, _LONG_DAYS = 2, 30


def measurements(profile: Profile) -> Iterator[Measurement[Path]]:
    """Yield them; engines that are compared are measured one right after the other."""
    small = profile is Profile.SMALL  # to try the command; its figures have little meaning
    records, months = (20_000, 1) if small else (500_000, 6)
    yield Measurement("ingest", "ingest", lambda _: [measure_ingest(records, _CORES)])
    yield Measurement("forecast", "forecast", lambda _: _accuracy(months))
    fleet, days = (Fleet(brokers=100), 2) if small else (Fleet(), 3)
    yield _lane(fleet, "spark", days, (*WORKS, *PARTS))
    yield _lane(fleet, "duckdb", days, WORKS)
    yield _lane(fleet, "spark", days, (REPLAY, REGRESSION), cores=1)
    yield _lane(fleet, "spark", 2 * days, (REPLAY, REGRESSION))
    if profile is Profile.FULL:
        yield _lane(fleet, "spark", _LONG_DAYS, WORKS)
        yield _lane(fleet, "duckdb", _LONG_DAYS, WORKS)


def _lane(
    fleet: Fleet, engine: str, days: int, works: tuple[str, ...], *, cores: int = _CORES
) -> Measurement[Path]:
    def run(all_samples: Path) -> list[Cost]:
        samples = all_samples / f"{fleet.brokers}-brokers"
        make(samples, fleet, days)
        return measure_engine(engine, cores, samples, fleet, days, works)

    return Measurement(f"{engine}-{cores}-cores-{days}-days", "engines", run)


def _accuracy(months: int) -> list[Accuracy]:
    session = start_session("kquota bench", {"spark.master": f"local[{_CORES}]"}, print)
    try:
        return measure_accuracy(session, range(1, months + 1))
    finally:
        session.stop()


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
)

if __name__ == "__main__":
    main(BENCH)
