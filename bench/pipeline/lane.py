"""One engine with this many cores, in a process of its own: its cost of each work, as lines of JSON.

python -m bench.pipeline.lane ENGINE CORES FOLDER DAYS REPEATS WORK…
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.harness.processor import processor_seconds
from bench.pipeline.work import DUCKDB, SPARK, Answer, folders, spark_usage

_WARM_UPS = 2


def main() -> None:
    """Run the works that the arguments name, each this many times; runs on one day warm up before."""
    engine, cores, folder, days, repeats, *works = sys.argv[1:]
    run = _spark(int(cores)) if engine == "spark" else _duckdb(int(cores))
    for work in works:
        for _ in range(_WARM_UPS):
            run(work, Path(folder), 1)
        wall_seconds, cpu_seconds = [], []
        for _ in range(int(repeats)):
            wall, cpu = time.monotonic(), processor_seconds()
            answer = run(work, Path(folder), int(days))
            cpu_seconds.append(processor_seconds() - cpu)
            wall_seconds.append(time.monotonic() - wall)
        found = {"work": work, "answer": answer, "cpu_seconds": cpu_seconds, "wall_seconds": wall_seconds}
        print(json.dumps(found), flush=True)


def _spark(cores: int) -> Callable[[str, Path, int], Answer]:
    from kquota_pipeline.session import start_session  # noqa: PLC0415 - DuckDB's lane does without Spark

    session = start_session(
        "kquota bench",
        {
            "spark.master": f"local[{cores}]",
            "spark.sql.shuffle.partitions": str(cores),
            "spark.driver.memory": "3g",
        },
        lambda message: print(message, file=sys.stderr),
    )
    return lambda work, folder, days: SPARK[work](spark_usage(session, folder, days))


def _duckdb(cores: int) -> Callable[[str, Path, int], Answer]:
    import duckdb  # noqa: PLC0415 - Spark's lane does without DuckDB

    connection = duckdb.connect(config={"threads": cores})

    def run(work: str, folder: Path, days: int) -> Answer:
        files = ", ".join(f"'{day}/*.parquet'" for day in folders(folder, days))
        return DUCKDB[work](connection, f"[{files}]")

    return run


if __name__ == "__main__":
    main()
