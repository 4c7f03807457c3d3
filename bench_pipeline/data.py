"""Samples of volumes as they lie in the tables: sorted by broker, volume and time, in files of some
brokers.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

BROKERS, VOLUMES = 1000, 8
TICK_SECONDS = 30
TICKS_PER_DAY = 86_400 // TICK_SECONDS
_BROKERS_PER_FILE = 125
_START_SECONDS = 1_790_812_800  # 2026-10-01, UTC

# Saw-teeth of hours to days and noise, all from the ids alone; a few volumes reach over their limits.
_ROWS = """
SELECT 'bench' AS cluster_id, b::INTEGER AS broker_id, '/dev/sd' || chr(98 + v::INTEGER) AS volume_name,
  make_timestamptz(({start} + t * {tick}) * 1000000) AS "at", capacity AS capacity_bytes,
  least(capacity, floor(capacity * (
    CASE WHEN h % 2003 = 0 THEN 0.70 + 0.28 * ((t + h) % period) / period
         ELSE 0.30 + 0.35 * (h % 100) / 100.0 + 0.12 * ((t + h) % period) / period END
    + 0.01 * (hash(t, h) % 1000) / 1000.0)))::BIGINT AS consumed_bytes,
  'ok' AS status, 'data' AS role
FROM (SELECT b, v, hash(b, v) % 1000003 AS h, 2000000000000 * (1 + hash(b, v) % 2)::BIGINT AS capacity,
        240 + (hash(v, b) % 5000) AS period
      FROM range({first}, {last}) brokers(b), range({volumes}) volumes(v)) disks,
  range({ticks}) ticks(t)
ORDER BY broker_id, volume_name, "at"
"""


def make(folder: Path, days: int) -> int:
    """Write `days` of samples below a folder, a directory of Parquet files each day; return the rows."""
    connection = duckdb.connect()
    for day in range(days):
        target = folder / f"day={day:02d}"
        target.mkdir(parents=True)
        for first in range(0, BROKERS, _BROKERS_PER_FILE):
            rows = _ROWS.format(
                start=_START_SECONDS,
                tick=TICK_SECONDS,
                day=TICKS_PER_DAY,
                first=first,
                last=first + _BROKERS_PER_FILE,
                volumes=VOLUMES,
                ticks=f"{day * TICKS_PER_DAY}, {(day + 1) * TICKS_PER_DAY}",
            )
            connection.execute(
                f"COPY ({rows}) TO '{target}/{first:04d}.parquet' (FORMAT parquet, COMPRESSION zstd)"
            )
    return BROKERS * VOLUMES * TICKS_PER_DAY * days
