"""The history of a real broker. Forecasts are judged on it, and not tuned.

The pipeline itself reads the records of the sample. Only their times and retentions are made longer: a second
of the recording stands for an hour. Each volume is forecast at some days, so the same bytes are judged
more than once: a volume on which a topic is new, at its first days.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.pipeline.fleets.made import MadeVolume
from kquota_pipeline.forecast.history import DAY_HOURS, Looks, Series
from kquota_pipeline.forecast.looks import hourly_looks, looks_of, series_of
from kquota_pipeline.forecast.series import hourly
from kquota_pipeline.ingest.records import read_records
from kquota_pipeline.ingest.rows import expiry_rows, topic_rows, usage_rows

SAMPLE = Path(__file__).with_name("samples") / "history.jsonl.xz"
FIRST_HOUR = 499_000
_FULL_DAYS = 8
"""From this day on the longest retention is reached: the history that is judged begins here."""
FIRST_CUT_DAY, STEP_DAYS, AFTER_DAYS = _FULL_DAYS + 14, 4, 14
"""The first forecast knows two weeks, and of each one the two weeks after it are recorded."""
NEW_TOPIC = "new topic"
NEW_TOPIC_DAYS = 3
"""At this many days, from its second one on, a topic is judged as new."""
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@dataclass(frozen=True, slots=True)
class RecordedVolume:
    """The volume of a log dir; at its `surprises`, days, something began that no history had shown, and at
    `new_days`, which are some of them, a topic.
    """

    family: str
    log_dir: str
    surprises: tuple[float, ...]
    new_days: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Recording:
    """A second of the recording stands for `scale` of the history, which begins at `began`. `records` are the
    values of the history topic, as they came.
    """

    scale: float
    began: float
    volumes: tuple[RecordedVolume, ...]
    records: tuple[bytes, ...]


def read_sample() -> Recording:
    """Read the sample: a line about it, and the records."""
    first, *records = lzma.decompress(SAMPLE.read_bytes()).splitlines()
    about = json.loads(first)
    volumes = tuple(
        RecordedVolume(one["family"], one["log_dir"], tuple(one["surprises"]), tuple(one["new_days"]))
        for one in about["volumes"]
    )
    return Recording(about["scale"], about["began"], volumes, tuple(records))


def fleet(spark: SparkSession) -> list[MadeVolume]:
    """Return each recorded volume at each day that it is forecast at."""
    return [one for volume in _recorded_volumes(spark, read_sample()) for one in _cuts(*volume)]


def _recorded_volumes(
    spark: SparkSession, recording: Recording
) -> Iterator[tuple[RecordedVolume, Series, Looks | None, float, float]]:
    """Yield each volume with its hours, its looks, and both limits in bytes, as the pipeline reads them."""
    read = read_records(_messages(spark, recording.records)).localCheckpoint()
    usage = _moved(usage_rows(read), recording)
    hours = hourly(usage).toPandas()
    kept = F.col("retention_seconds") * F.lit(recording.scale)
    topics = _moved(topic_rows(read), recording).withColumn("retention_seconds", kept)
    looks = hourly_looks(_moved(expiry_rows(read), recording), topics).toPandas()
    places = usage.select("volume_name", F.col("log_dirs")[0].alias("log_dir")).distinct().toPandas()
    names = dict(zip(places["log_dir"], places["volume_name"], strict=True))
    for volume in recording.volumes:
        name = names[volume.log_dir]
        own = hours[hours["volume_name"] == name].sort_values("hour")
        seen = looks[looks["volume_name"] == name]
        last = own.iloc[-1]
        yield volume, series_of(own), looks_of(seen), float(last["soft_bytes"]), float(last["hard_bytes"])


def _messages(spark: SparkSession, records: Sequence[bytes]) -> DataFrame:
    """Return the records as Spark's Kafka source does."""
    count = len(records)
    now = datetime.now(UTC)
    table = pa.table(
        {
            "key": pa.array([b""] * count, pa.binary()),
            "value": pa.array(records, pa.binary()),
            "topic": ["history"] * count,
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "headers": pa.array([None] * count, _HEADERS),
            "timestamp": pa.array([now] * count, pa.timestamp("us", tz="UTC")),
        }
    )
    return spark.createDataFrame(table)


def _moved(rows: DataFrame, recording: Recording) -> DataFrame:
    """Return rows with the times of the history that they stand for."""
    passed = F.unix_micros("at") - F.lit(round(recording.began * 1e6))
    micros = F.lit(FIRST_HOUR * 3_600_000_000) + (passed * F.lit(round(recording.scale)))
    return rows.withColumn("at", F.timestamp_micros(micros.cast("long")))


def _cuts(
    volume: RecordedVolume,
    series: Series,
    looks: Looks | None,
    soft_bytes: float,
    hard_bytes: float,
) -> Iterator[MadeVolume]:
    begin = FIRST_HOUR + _FULL_DAYS * DAY_HOURS
    known = _since(series, begin)
    seen = None if looks is None else looks.since(begin)
    # The recording may have gone on for longer than its records.
    days = (int(series.hours[-1]) + 1 - FIRST_HOUR) // DAY_HOURS
    for day, family in cut_days(volume, days):
        sudden = [FIRST_HOUR + int(at * DAY_HOURS) for at in volume.surprises if at >= day]
        calm = known.until(min(sudden) - 1) if sudden else None
        name = f"{volume.log_dir} at day {day}"
        cut = FIRST_HOUR + day * DAY_HOURS - 1
        yield MadeVolume(family, name, known, seen, cut, soft_bytes, hard_bytes, calm)


def cut_days(volume: RecordedVolume, days: int) -> list[tuple[int, str]]:
    """Return the days that a volume is forecast at, and the family that it is of at each, in a recording of
    this many days.

    For some days from its second one on a topic is new, and the volume is of NEW_TOPIC. On its first day
    the volume is not forecast.
    """
    last = days - AFTER_DAYS
    found = dict.fromkeys(range(FIRST_CUT_DAY, last + 1, STEP_DAYS), volume.family)
    for began in volume.new_days:
        second = ceil(began) + 1
        found = {day: family for day, family in found.items() if not began < day < second + NEW_TOPIC_DAYS}
        found |= dict.fromkeys(range(second, min(second + NEW_TOPIC_DAYS, last + 1)), NEW_TOPIC)
    return sorted(found.items())


def _since(series: Series, hour: int) -> Series:
    rows = slice(int(np.searchsorted(series.hours, hour)), None)
    return Series(
        series.hours[rows],
        series.crest_bytes[rows],
        series.held[rows],
        series.capacity_bytes,
        series.volume_ids[rows],
    )
