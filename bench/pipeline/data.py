"""Samples of volumes as they lie in the tables: sorted by broker, volume and time, in files of some
brokers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

TICK_SECONDS = 30
TICKS_PER_DAY = 86_400 // TICK_SECONDS
_FILES_PER_DAY = 8
_START_SECONDS = 1_790_812_800  # 2026-10-01, UTC
# This many volumes go over their limits, each on days of its own.
_HOT = 4

# Saw-teeth of hours to days and noise, all from the ids alone; the hot volumes reach over their limits.
_ROWS = """
SELECT 'bench-cluster-00000001' AS cluster_id, b::INTEGER AS broker_id,
  '/dev/sd' || chr(98 + v::INTEGER) AS volume_name,
  make_timestamptz(({start} + t * {tick}) * 1000000) AS "at", capacity AS capacity_bytes,
  least(capacity, floor(capacity * (
    CASE WHEN v = 0 AND b % {apart} = 0 THEN 0.70 + 0.28 * ((t + h) % period) / period
         ELSE 0.30 + 0.35 * (h % 100) / 100.0 + 0.12 * ((t + h) % period) / period END
    + 0.01 * (hash(t, h) % 1000) / 1000.0)))::BIGINT AS consumed_bytes,
  'ok' AS status, 'data' AS role, 'instance-' || b AS instance_id, t::BIGINT AS sequence,
  make_timestamptz(({start} + t * {tick}) * 1000000)::DATE AS "day",
  'a1b2c3d4-0000-4000-8000-' || (b * 64 + v) AS volume_id,
  ['/data/' || v || '/kafka'] AS log_dirs, '/data/' || v AS mount_point, false AS latched,
  'MinFreePercentage' AS hard_limit_type, 5.0::DOUBLE AS hard_limit_level,
  'MinFreePercentage' AS soft_limit_type, 15.0::DOUBLE AS soft_limit_level,
  'OPEN' AS applied_state, 1.0::DOUBLE AS applied_factor, 'none' AS applied_mechanism,
  NULL::BIGINT AS fill_ceiling_bytes_per_second, NULL::VARCHAR[] AS topics, NULL::BIGINT AS topics_sequence,
  0::INTEGER AS kafka_partition, t::BIGINT AS kafka_offset
FROM (SELECT b, v, hash(b, v) % 1000003 AS h, 2000000000000 * (1 + hash(b, v) % 2)::BIGINT AS capacity,
        240 + (hash(v, b) % 5000) AS period
      FROM range({first}, {last}) brokers(b), range({volumes}) volumes(v)) disks,
  range({ticks}) ticks(t)
ORDER BY broker_id, volume_name, "at"
"""


@dataclass(frozen=True, slots=True)
class Fleet:
    """How many brokers with how many volumes each."""

    brokers: int = 1000
    volumes: int = 8

    def rows(self, days: int) -> int:
        """Return how many samples this many days have."""
        return self.brokers * self.volumes * TICKS_PER_DAY * days


def make(folder: Path, fleet: Fleet, days: int) -> None:
    """Write `days` of samples below a folder, a directory of Parquet files each day; days that are there stay
    as they are.
    """
    connection = duckdb.connect()
    step = max(1, fleet.brokers // _FILES_PER_DAY)
    for day in range(days):
        target = day_folder(folder, day)
        if target.exists():
            continue
        unfinished = target.with_name(f"unfinished-{day:02d}")
        unfinished.mkdir(parents=True, exist_ok=True)
        for first in range(0, fleet.brokers, step):
            rows = _ROWS.format(
                start=_START_SECONDS,
                tick=TICK_SECONDS,
                apart=max(1, fleet.brokers // _HOT),
                first=first,
                last=min(first + step, fleet.brokers),
                volumes=fleet.volumes,
                ticks=f"{day * TICKS_PER_DAY}, {(day + 1) * TICKS_PER_DAY}",
            )
            connection.execute(
                f"COPY ({rows}) TO '{unfinished}/{first:04d}.parquet' (FORMAT parquet, COMPRESSION zstd)"
            )
        unfinished.rename(target)


def day_folder(folder: Path, day: int) -> Path:
    """Return where a day's files are."""
    return folder / f"day={day:02d}"
