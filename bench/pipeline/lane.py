"""One engine with this many cores, in a process of its own: its cost of each work."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

import duckdb

from bench.harness.processor import processor_seconds
from bench.pipeline.cost import Cost
from bench.pipeline.data import Fleet
from bench.pipeline.work import DUCKDB, SPARK, Answer, folders, spark_usage
from kquota_pipeline.session import start_session

_WARM_UPS, _REPEATS = 2, 3
# Costs are compared within a run: only there are code, versions and machine the same.
_RUN = datetime.now(UTC).isoformat(timespec="seconds")


def measure_engine(
    engine: str, cores: int, samples: Path, fleet: Fleet, days: int, works: Sequence[str]
) -> list[Cost]:
    """Run each work some times on the fleet's samples; runs on one day warm up before."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        costs = process.submit(_measure, engine, cores, samples, fleet, days, works).result()
    return [replace(cost, run=_RUN) for cost in costs]


def _measure(
    engine: str, cores: int, samples: Path, fleet: Fleet, days: int, works: Sequence[str]
) -> list[Cost]:
    load, costs = os.getloadavg()[0], []
    run = _spark(cores) if engine == "spark" else _duckdb(cores)
    for work in works:
        for _ in range(_WARM_UPS):
            run(work, samples, 1)
        wall_seconds, cpu_seconds = [], []
        for _ in range(_REPEATS):
            wall, cpu = time.monotonic(), processor_seconds()
            answer = run(work, samples, days)
            cpu_seconds.append(processor_seconds() - cpu)
            wall_seconds.append(time.monotonic() - wall)
        seconds = tuple(cpu_seconds), tuple(wall_seconds)
        costs.append(Cost(engine, cores, days, fleet.rows(days), load, work, answer, *seconds))
    return costs


def _spark(cores: int) -> Callable[[str, Path, int], Answer]:
    master = {"spark.master": f"local[{cores}]", "spark.sql.shuffle.partitions": str(cores)}
    session = start_session("kquota bench", {**master, "spark.driver.memory": "3g"}, print)
    return lambda work, folder, days: SPARK[work](spark_usage(session, folder, days))


def _duckdb(cores: int) -> Callable[[str, Path, int], Answer]:
    connection = duckdb.connect(config={"threads": cores})

    def run(work: str, folder: Path, days: int) -> Answer:
        files = ", ".join(f"'{day}/*.parquet'" for day in folders(folder, days))
        return DUCKDB[work](connection, f"[{files}]")

    return run
