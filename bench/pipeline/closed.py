"""The closed loop of many policies: processor time and peak memory of the whole job."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import duckdb

from bench.harness.processor import processor_seconds
from bench.pipeline.figures import ClosedLoop
from bench.pipeline.processes import peak_memory
from kquota.policy.limits import Limit, LimitType
from kquota_pipeline.backtest.job import closed_loop, closed_loop_summary
from kquota_pipeline.backtest.policy import Limits, Policy
from kquota_pipeline.session import start_session
from kquota_pipeline.tables import DECISIONS, OPERATORS

TICK_SECONDS, SAMPLE_SECONDS = 600, 30
START_SECONDS = 1_790_812_800  # 2026-10-01, UTC
_CLIENTS = 3
CAPACITY_BYTES, MB = 2_000_000_000_000, 1_000_000
# Disks of 2 TB that begin between 40 and 80 % full and go up and down by a tenth within two days: a few
# reach over their limits.
_USAGE = """
SELECT 'bench-cluster-00000001' AS cluster_id, b::INTEGER AS broker_id, 'agent' AS instance_id, t AS sequence,
  make_timestamptz(({start} + t * {sample}) * 1000000) AS "at",
  '/dev/sd' || chr(98 + v::INTEGER) AS volume_name,
  'id-' || b || '-' || v AS volume_id, '/data/' || v AS mount_point, 'ok' AS status, 'data' AS role,
  {capacity}::BIGINT AS capacity_bytes,
  ({capacity} * (0.4 + 0.4 * (h % 997) / 997 + 0.1 * (1 + sin(6.283 * (t * {sample} / 172800.0 + h % 7))))
   )::BIGINT AS consumed_bytes,
  'MinFreePercentage' AS hard_limit_type, 5.0 AS hard_limit_level,
  'MinFreePercentage' AS soft_limit_type, 15.0 AS soft_limit_level,
  NULL::BIGINT AS fill_ceiling_bytes_per_second, NULL::VARCHAR[] AS topics, NULL::BIGINT AS topics_sequence
FROM (SELECT b, v, hash(b, v) % 1000003 AS h FROM range({brokers}) x(b), range({volumes}) y(v)),
  range({first}, {last}) z(t) ORDER BY b, v, t
"""
_WRITERS = """
SELECT 'bench-cluster-00000001' AS cluster_id, b::INTEGER AS broker_id, 'agent' AS instance_id, t AS sequence,
  make_timestamptz(({start} + t * {tick}) * 1000000) AS "at", {tick}::DOUBLE AS window_seconds,
  'CN=app' AS user,
  'client-' || c AS client_id, {mb} * 5.0 AS produce_bytes_per_second, 0.0 AS throttled_seconds,
  {mb} * 15.0 AS observed_bytes_per_second, NULL::DOUBLE AS baseline_bytes_per_second, 0 AS omitted_clients,
  NULL::VARCHAR[] AS topics
FROM range({brokers}) x(b), range({clients}) y(c), range({ticks}) z(t)
"""


@dataclass(frozen=True, slots=True)
class Fleet:
    """A cluster, its history and the policies to try."""

    brokers: int = 100
    volumes: int = 8
    days: int = 30
    policies: int = 32

    @property
    def ticks(self) -> int:
        """How many steps the history has."""
        return self.days * 86_400 // TICK_SECONDS


def policies(count: int) -> list[Policy]:
    """Return policies with limits of their own."""
    kind = LimitType.MIN_FREE_PERCENTAGE
    return [
        Policy(f"p{n:02d}", Limits(hard=Limit.of(kind, 3 + n % 4), soft=Limit.of(kind, 10 + n // 4)))
        for n in range(count)
    ]


def measure_job(folder: Path, fleet: Fleet, cores: int) -> ClosedLoop:
    """Run the job in a process of its own, on samples that are made below the folder."""
    make(folder, fleet)
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(_run, folder, fleet, cores).result()


def make(folder: Path, fleet: Fleet) -> None:
    """Write the fleet's samples and the records of its clients."""
    if folder.exists():
        return
    unfinished = folder.with_name(f"unfinished-{folder.name}")
    (unfinished / "usage").mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect()
    fields = {
        "start": START_SECONDS, "sample": SAMPLE_SECONDS, "tick": TICK_SECONDS, "capacity": CAPACITY_BYTES,
        "brokers": fleet.brokers, "volumes": fleet.volumes, "ticks": fleet.ticks, "clients": _CLIENTS,
        "mb": MB,
    }  # fmt: skip
    a_day = 86_400 // SAMPLE_SECONDS
    for day in range(fleet.days):
        rows = _USAGE.format(**fields, first=day * a_day, last=(day + 1) * a_day)
        _write(connection, rows, unfinished / "usage" / f"{day:02d}.parquet")
    _write(connection, _WRITERS.format(**fields), unfinished / "clients.parquet")
    unfinished.rename(folder)


def _write(connection: duckdb.DuckDBPyConnection, rows: str, path: Path) -> None:
    connection.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")


def _run(folder: Path, fleet: Fleet, cores: int) -> ClosedLoop:
    settings = {"spark.master": f"local[{cores}]", "spark.sql.shuffle.partitions": str(cores)}
    session = start_session("kquota bench", {**settings, "spark.driver.memory": "1g"}, print)
    usage, clients = (session.read.parquet(f"{folder}/{name}") for name in ("usage", "clients.parquet"))
    samples = fleet.brokers * fleet.volumes * fleet.days * 86_400 // SAMPLE_SECONDS
    begun, cpu = time.monotonic(), processor_seconds()
    with peak_memory() as peak:
        course = closed_loop(
            usage,
            session.createDataFrame([], DECISIONS.schema),
            clients,
            session.createDataFrame([], OPERATORS.schema),
            policies(fleet.policies),
            TICK_SECONDS,
        )
        rows = closed_loop_summary(course, TICK_SECONDS).collect()
    held = sum(row.open_seconds < fleet.days * 86_400 for row in rows)
    filled = sum(row.first_filled_tick is not None for row in rows)
    return ClosedLoop(
        brokers=fleet.brokers,
        volumes=fleet.volumes,
        ticks=fleet.ticks,
        policies=len(rows),
        samples=samples,
        policies_that_held=held,
        policies_that_filled=filled,
        cpu_seconds=processor_seconds() - cpu,
        wall_seconds=time.monotonic() - begun,
        peak_bytes=peak.tree_bytes,
    )
