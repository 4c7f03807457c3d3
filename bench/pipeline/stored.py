"""A generated fleet in the pipeline's tables, as `ingest` leaves them: for measurements of whole commands.

All is made by DuckDB of ids and times alone, and appended by the pipeline's own functions.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kquota_pipeline import delta
from kquota_pipeline.session import start_session
from kquota_pipeline.tables import (
    CLIENTS,
    DECISIONS,
    EXPIRY,
    INGESTED,
    OPERATORS,
    RECORDS,
    TOPICS,
    USAGE,
    Table,
    Tables,
)

START = datetime(2025, 10, 1, tzinfo=UTC)
_DAY_SECONDS, _SUMMARY_SECONDS, _LOOK_SECONDS = 86_400, 600, 3600
_CAPACITY_BYTES, _MB = 2_000_000_000_000, 1_000_000
_CLIENTS, _TOPICS = 3, 6
_AT_ONCE_DAYS = 30
# A task has a file of each of these days open: of row groups of 128 MiB, they would not fit into memory.
_SETTINGS = {"spark.driver.memory": "3g", "spark.hadoop.parquet.block.size": str(32 * 1024 * 1024)}

_AT = 'make_timestamptz(({start} + t * {step}) * 1000000) AS "at"'
_MOMENT = "strftime(make_timestamp(({start} + t * {step}) * 1000000), '%Y-%m-%dT%H:%M:%SZ')"
_ENVELOPE = (
    "'bench-cluster-00000001' AS cluster_id, b::INTEGER AS broker_id, 'instance-' || b AS instance_id, "
    f"t::BIGINT AS sequence, {_AT}, 0::INTEGER AS kafka_partition, (t * 10000 + b)::BIGINT AS kafka_offset"
)
# Disks that begin between 40 and 80 % full and go up and down by a tenth within two days: a few reach over
# their limits.
_CONSUMED = (
    "({capacity} * (0.4 + 0.4 * (hash(b, v) % 997) / 997 "
    "+ 0.1 * (1 + sin(6.283 * (t * {step} / 172800.0 + hash(b, v) % 7)))))::BIGINT"
)
_OF_BROKERS = "FROM range({brokers}) x(b), range({first}, {last}) z(t)"
_OF_VOLUMES = "FROM range({brokers}) x(b), range({volumes}) y(v), range({first}, {last}) z(t)"
_ROWS: Mapping[Table, tuple[int | None, str]] = {
    # None: at each sample.
    RECORDS: (
        None,
        """SELECT '__kquota_history' AS kafka_topic, (b % 4)::INTEGER AS kafka_partition,
  (t * {brokers} + b)::BIGINT AS kafka_offset,
  make_timestamptz(({start} + t * {step}) * 1000000) AS kafka_timestamp,
  make_timestamptz(({start} + t * {step}) * 1000000) AS ingested_at, encode(b::VARCHAR) AS "key",
  encode('{{"SchemaVersion":1,"Kind":"usage","ClusterId":"bench-cluster-00000001","BrokerId":' || b
    || ',"InstanceId":"instance-' || b || '","Sequence":' || t || ',"At":"' || {moment}
    || '","Body":{{"SchemaVersion":1,"SnapshotAt":"' || {moment}
    || '","HardLimit":{{"type":"MinFreePercentage","level":5}},'
    || '"SoftLimit":{{"type":"MinFreePercentage","level":15}},"Volumes":['
    || array_to_string(list_transform(range({volumes}), v -> '{{"VolumeName":"/dev/sd' || chr(98 + v::INTEGER)
      || '","Capacity":{capacity},"Consumed":' || """
        + _CONSUMED
        + """ || ',"VolumeId":"id-' || b || '-' || v || '","LogDirs":["/data/' || v || '/kafka"],'
      || '"Status":"ok","MountPoint":"/data/' || v || '"}}'), ',') || ']}}}}') AS "value" """
        + _OF_BROKERS,
    ),
    USAGE: (
        None,
        f"""SELECT {_ENVELOPE}, '/dev/sd' || chr(98 + v::INTEGER) AS volume_name,
  'id-' || b || '-' || v AS volume_id, '/data/' || v AS mount_point, ['/data/' || v || '/kafka'] AS log_dirs,
  'ok' AS status, 'data' AS role, false AS latched, {{capacity}}::BIGINT AS capacity_bytes,
  {_CONSUMED} AS consumed_bytes, 'MinFreePercentage' AS hard_limit_type, 5.0::DOUBLE AS hard_limit_level,
  'MinFreePercentage' AS soft_limit_type, 15.0::DOUBLE AS soft_limit_level, 'OPEN' AS applied_state,
  1.0::DOUBLE AS applied_factor, 'none' AS applied_mechanism {_OF_VOLUMES}""",
    ),
    DECISIONS: (
        _SUMMARY_SECONDS,
        f"""SELECT {_ENVELOPE}, 'OPEN' AS state, 1.0::DOUBLE AS factor, false AS fallback, 'enforce' AS mode,
  'OPEN' AS sentence {_OF_BROKERS}""",
    ),
    CLIENTS: (
        _SUMMARY_SECONDS,
        f"""SELECT {_ENVELOPE}, {{step}}::DOUBLE AS window_seconds, 'CN=app-' || v AS "user",
  'client-' || v AS client_id, {{mb}} * 5.0 AS produce_bytes_per_second, 0.0::DOUBLE AS throttled_seconds,
  {{mb}} * 15.0 AS observed_bytes_per_second, 0::INTEGER AS omitted_clients,
  ['topic-' || v] AS topics
  FROM range({{brokers}}) x(b), range({{clients}}) y(v), range({{first}}, {{last}}) z(t)""",
    ),
    TOPICS: (
        _LOOK_SECONDS,
        f"""SELECT {_ENVELOPE}, {{step}}::DOUBLE AS span_seconds,
  '/dev/sd' || chr(98 + v::INTEGER) AS volume_name, 'id-' || b || '-' || v AS volume_id,
  'topic-' || k AS topic, ({_CONSUMED} / {{topics}})::BIGINT AS bytes,
  1000000000::BIGINT AS leaving_soon_bytes, 0::BIGINT AS grown_bytes, 259200.0::DOUBLE AS retention_seconds
  FROM range({{brokers}}) x(b), range({{volumes}}) y(v), range({{topics}}) w(k),
    range({{first}}, {{last}}) z(t)""",
    ),
    EXPIRY: (
        _LOOK_SECONDS,
        f"""SELECT {_ENVELOPE}, '/dev/sd' || chr(98 + v::INTEGER) AS volume_name,
  'id-' || b || '-' || v AS volume_id, 1000000000::BIGINT AS leaving_10m_bytes,
  6000000000::BIGINT AS leaving_1h_bytes, 30000000000::BIGINT AS leaving_6h_bytes,
  90000000000::BIGINT AS leaving_1d_bytes, 180000000000::BIGINT AS leaving_3d_bytes,
  0::BIGINT AS leaving_7d_bytes, 0::BIGINT AS leaving_30d_bytes, 0::BIGINT AS leaving_later_bytes,
  0::BIGINT AS never_bytes {_OF_VOLUMES}""",
    ),
}


@dataclass(frozen=True, slots=True)
class StoredFleet:
    """A cluster and its history."""

    brokers: int
    days: int
    volumes: int = 8
    sample_seconds: int = 30

    @property
    def samples(self) -> int:
        """How many samples of volumes the history has."""
        return self.brokers * self.volumes * self.days * _DAY_SECONDS // self.sample_seconds

    @property
    def last_day(self) -> date:
        """The last of its days."""
        return (START + timedelta(days=self.days - 1)).date()


def store(folder: Path, fleet: StoredFleet, days: range, only: Iterable[Table] = INGESTED) -> Tables:
    """Append days of a fleet's history to the tables in a folder, which are made if they are not there; the
    tables that are not wanted stay empty.
    """
    # Spark ends with its process: what is measured starts its own.
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        process.submit(_store, folder, fleet, days, {table.name for table in only}).result()
    return Tables(f"file:{folder}/tables")


def _store(folder: Path, fleet: StoredFleet, days: range, only: set[str]) -> None:
    session = start_session("kquota bench", _SETTINGS, print)
    append_days(session, folder, fleet, days, only)
    session.stop()


def append_days(
    session: SparkSession, folder: Path, fleet: StoredFleet, days: range, only: Collection[str]
) -> None:
    """Append days of a fleet's history to the tables of these names; all tables are made."""
    tables = Tables(f"file:{folder}/tables")
    for table in (*INGESTED, OPERATORS):
        delta.create(session, tables, table)
    for first in range(days.start, days.stop, _AT_ONCE_DAYS):
        some = range(first, min(first + _AT_ONCE_DAYS, days.stop))
        for table in _ROWS:
            if table.name in only:
                _append(session, folder, fleet, some, tables, table)


def _append(
    session: SparkSession, folder: Path, fleet: StoredFleet, days: range, tables: Tables, table: Table
) -> None:
    files = folder / "unfinished"
    shutil.rmtree(files, ignore_errors=True)
    files.mkdir(parents=True)
    step, rows = _ROWS[table]
    seconds = step or fleet.sample_seconds
    a_day = _DAY_SECONDS // seconds
    connection = duckdb.connect()
    for day in days:
        made = rows.replace("{moment}", _MOMENT).format(
            start=int(START.timestamp()), step=seconds, capacity=_CAPACITY_BYTES, mb=_MB, clients=_CLIENTS,
            topics=_TOPICS, brokers=fleet.brokers, volumes=fleet.volumes, first=day * a_day,
            last=(day + 1) * a_day,
        )  # fmt: skip
        connection.execute(f"COPY ({made}) TO '{files}/{day:03d}.parquet' (FORMAT parquet)")
    frame = session.read.parquet(f"file:{files}")
    at = "kafka_timestamp" if table is RECORDS else "at"
    frame = frame.withColumn("day", F.to_date(at))
    columns = [
        (F.col(field.name) if field.name in frame.columns else F.lit(None))
        .cast(field.dataType)
        .alias(field.name)
        for field in table.schema
    ]
    delta.append(frame.select(*columns), tables, table)
    shutil.rmtree(files)
