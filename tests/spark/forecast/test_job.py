"""The forecast of every volume, from the tables to one row for each."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from pyspark.sql import Row, SparkSession

from bench.pipeline.fleets.made import MadeVolume
from kquota_pipeline.forecast.conformal import USUAL
from kquota_pipeline.forecast.history import DAY_HOURS, Looks
from kquota_pipeline.forecast.job import FORECAST, _finished, forecast
from kquota_pipeline.forecast.looks import hourly_looks
from kquota_pipeline.forecast.probabilities import WITHIN_DAYS
from kquota_pipeline.forecast.series import hourly
from kquota_pipeline.forecast.volume import Basis, volume_forecast
from kquota_pipeline.tables import EXPIRY, TOPICS, USAGE
from tests.spark.forecast import made_series
from tests.spark.forecast.made_series import retained
from tests.spark.rows import rows

_LEAVING = [f"leaving_{name}_bytes" for name in ("10m", "1h", "6h", "1d", "3d", "7d", "30d", "later")]


def envelope(name: str, hour: int, sequence: int) -> dict[str, object]:
    at = datetime.fromtimestamp(hour * 3600 + 3000, UTC)
    return {
        "cluster_id": "c", "broker_id": 1, "instance_id": "i", "sequence": sequence, "at": at,
        "day": at.date(), "volume_name": name, "volume_id": "a",
    }  # fmt: skip


def usage_rows(volume: MadeVolume) -> list[dict[str, object]]:
    known = volume.known
    return [
        envelope(volume.name, int(hour), number)
        | {
            "status": "ok", "role": "data", "mount_point": "/data/1", "consumed_bytes": int(crest),
            "capacity_bytes": int(known.capacity_bytes), "applied_factor": 1.0,
            "soft_limit_type": "ConsumedSpace", "soft_limit_level": float(volume.soft_bytes),
            "hard_limit_type": "ConsumedSpace", "hard_limit_level": float(volume.hard_bytes),
        }
        for number, (hour, crest) in enumerate(zip(known.hours, known.crest_bytes, strict=True))
    ]  # fmt: skip


def expiry_rows(name: str, looks: Looks) -> list[dict[str, object]]:
    return [
        envelope(name, int(hour), number)
        | dict(zip(_LEAVING, (int(one) for one in leaving), strict=True))
        | {"never_bytes": int(never), "deleted_bytes": 0}
        for number, (hour, leaving, never) in enumerate(
            zip(looks.hours, looks.leaving_bytes, looks.never_bytes, strict=True)
        )
    ]


def topic_rows(name: str, looks: Looks) -> list[dict[str, object]]:
    found = []
    for number, hour in enumerate(looks.hours):
        of_look = envelope(name, int(hour), number) | {"span_seconds": 600.0}
        assert looks.topic_keep_hours is not None
        for topic, size, soon, kept in zip(
            looks.topics,
            looks.topic_bytes[number],
            looks.topic_soon_bytes[number],
            looks.topic_keep_hours[number],
            strict=True,
        ):
            if size > 0:
                sizes = {"bytes": int(size), "leaving_soon_bytes": int(soon)}
                retention = {"retention_seconds": float(kept) * 3600} if kept else {}
                found.append(of_look | {"topic": topic, **sizes, **retention})
        found.append(of_look | {"topic": None, "other_topics": 3, "bytes": 5, "leaving_soon_bytes": 0})
    return found


@pytest.fixture(scope="module")
def volumes() -> list[MadeVolume]:
    """A volume with looks, one without, and one with a day of history."""
    new = _with_a_new_topic()
    plain = replace(new, name="plain", looks=None)
    short = replace(plain, name="short", series=replace(new.series, **_last(new, 20)))
    return [new, plain, short]


def _with_a_new_topic() -> MadeVolume:
    hours, gigabytes = np.arange(24 * DAY_HOURS), 1e9
    rate = np.random.default_rng(1).lognormal(0, 0.1, len(hours)) * gigabytes
    topics = {
        "old": retained(rate, 72),
        "new": retained(np.where(hours >= 18 * DAY_HOURS, 4.0, 0.0) * rate, 72),
    }
    used = sum(size for size, _ in topics.values())
    seen = replace(made_series.looks(topics), topic_keep_hours=np.full((len(hours), 2), 72.0))
    whole = replace(
        made_series.series(50 * gigabytes + used), capacity_bytes=made_series.CAPACITY * gigabytes
    )
    cut = int(whole.hours[20 * DAY_HOURS - 1])
    return MadeVolume("new topic", "begun", whole, seen, cut, 800 * gigabytes, 900 * gigabytes)


def _last(volume: MadeVolume, hours: int) -> dict[str, object]:
    whole = volume.known
    return {name: getattr(whole, name)[-hours:] for name in ("hours", "crest_bytes", "held", "volume_ids")}


def elsewhere(given: list[dict[str, object]], volume: MadeVolume) -> list[dict[str, object]]:
    """Return rows of a disk that was in broker 1 until the middle of its history, and in broker 2 from then
    on, both in the hour between.
    """
    hours = volume.known.hours
    middle = datetime.fromtimestamp(int(hours[len(hours) // 2]) * 3600, UTC)
    first = [row | {"volume_name": "left"} for row in given if row["at"] < middle + timedelta(hours=1)]  # type: ignore[operator]
    then = [row | {"broker_id": 2, "volume_name": "moved"} for row in given if row["at"] >= middle]  # type: ignore[operator]
    return [row | {"volume_id": "m"} for row in (*first, *then)]


@pytest.fixture(scope="module")
def found(spark: SparkSession, volumes: list[MadeVolume]) -> dict[str, Row]:
    looks = volumes[0].known_looks
    assert looks is not None
    usage = rows(spark, USAGE, [row for volume in volumes for row in usage_rows(volume)])
    gone = [row | {"volume_name": "gone"} for row in usage_rows(volumes[0])[:-30]]
    usage = usage.union(rows(spark, USAGE, gone))
    # A disk that went to another broker, where another one was before. Its hour there counts twice.
    usage = usage.union(rows(spark, USAGE, elsewhere(usage_rows(volumes[0]), volumes[0])))
    before = [
        row | {"broker_id": 2, "volume_name": "moved", "volume_id": "z"} for row in usage_rows(volumes[1])
    ]
    usage = usage.union(rows(spark, USAGE, before[: len(before) // 3]))
    # A newer agent's type of limit, and a file system that says it has no bytes.
    strange = [
        row | {"volume_name": "strange", "soft_limit_type": "FreeBlocks"} for row in usage_rows(volumes[1])
    ]
    empty = [
        row | {"volume_name": "empty", "capacity_bytes": 0, "consumed_bytes": 0}
        for row in usage_rows(volumes[1])
    ]
    usage = usage.union(rows(spark, USAGE, [*strange, *empty]))
    seen = topic_rows(volumes[0].name, looks), expiry_rows(volumes[0].name, looks)
    topics = rows(spark, TOPICS, [*seen[0], *elsewhere(seen[0], volumes[0])])
    expiry = rows(spark, EXPIRY, [*seen[1], *elsewhere(seen[1], volumes[0])])
    return {row.volume_name: row for row in forecast(hourly(usage), hourly_looks(expiry, topics)).collect()}


def test_every_volume_of_the_last_day_has_a_row_with_all_columns(
    found: dict[str, Row], volumes: list[MadeVolume]
) -> None:
    assert set(found) == {*(volume.name for volume in volumes), "moved", "strange", "empty"}
    assert list(found["short"].asDict()) == FORECAST.fieldNames()
    assert [found[volume.name].basis for volume in volumes] == [Basis.EXPIRY, Basis.USAGE, None]
    short = found["short"]
    assert short.soft_outlook == "too little history"
    assert (short.crest_bytes, short.soft_days, short.soft_within_7d) == (None, None, None)


def test_the_tables_lead_to_the_forecast_of_their_arrays(
    found: dict[str, Row], volumes: list[MadeVolume]
) -> None:
    for volume in volumes[:2]:
        pure = volume_forecast(volume.known, volume.known_looks)
        assert pure is not None
        assert found[volume.name].crest_bytes == pytest.approx(list(pure.crest_bytes), rel=0.02)
    new = found[volumes[0].name]
    assert new.fastest_topic == "new"
    assert new.fastest_topic_bytes_per_day > 0
    assert found["plain"].fastest_topic is None


def test_a_disk_that_went_on_elsewhere_has_its_whole_history(
    found: dict[str, Row], volumes: list[MadeVolume]
) -> None:
    stayed, moved = (
        {
            name: value
            for name, value in found[name].asDict().items()
            if name not in ("broker_id", "volume_name")
        }
        for name in (volumes[0].name, "moved")
    )
    assert found["moved"].broker_id == 2
    assert moved == stayed


def test_a_limit_of_an_unknown_type_is_not_taken_for_one_that_is_far_away(found: dict[str, Row]) -> None:
    strange, plain = found["strange"], found["plain"]
    assert (strange.soft_outlook, strange.soft_bytes) == ("limit of an unknown type", None)
    assert (strange.soft_days, strange.soft_within_30d) == (None, None)
    assert strange.crest_bytes == pytest.approx(plain.crest_bytes, rel=0.02)
    assert (strange.hard_outlook, strange.hard_within_30d) == (plain.hard_outlook, plain.hard_within_30d)


def test_a_volume_without_bytes_has_a_row_and_no_forecast(found: dict[str, Row]) -> None:
    assert (found["empty"].capacity_bytes, found["empty"].basis) == (0, None)


def test_probabilities_grow_with_the_days_and_crests_lie_in_their_interval(found: dict[str, Row]) -> None:
    for row in found.values():
        if row.basis is None:
            continue
        low, crest, high = (np.array(row[f"{name}_bytes"]) for name in ("low", "crest", "high"))
        assert (low <= crest).all()
        assert (crest <= high).all()
        assert low.min() >= 0
        for limit in ("soft", "hard"):
            if row[f"{limit}_bytes"] is None:
                continue
            chances = [row[f"{limit}_within_{days}d"] for days in WITHIN_DAYS]
            assert chances == sorted(chances)
            assert (chances[-1] >= 0.5) == (row[f"{limit}_days"] is not None)
        if row.soft_bytes is not None:
            assert row.hard_within_30d <= row.soft_within_30d


def test_no_crest_is_foretold_to_be_higher_than_the_disk_and_its_limit_is_reached_all_the_same() -> None:
    row: dict[Hashable, object] = dict.fromkeys(FORECAST.fieldNames())
    row |= {
        "crest_bytes": np.full(30, 1600.0),
        "usual_error_bytes": np.full(30, 100.0),
        "capacity_bytes": 1000,
        "consumed_bytes": 400,
        "soft_bytes": 800.0,
        "hard_bytes": 980.0,
    }
    found = _finished(row, USUAL)
    for name in ("crest_bytes", "low_bytes", "high_bytes"):
        assert np.asarray(found[name]).tolist() == [1000.0] * 30
    assert found["hard_within_30d"] == pytest.approx(1.0, abs=0.02)


def test_no_bound_of_a_forecast_is_below_nothing() -> None:
    row: dict[Hashable, object] = dict.fromkeys(FORECAST.fieldNames())
    row |= {
        "crest_bytes": np.full(30, 50.0),
        "usual_error_bytes": np.full(30, 100.0),
        "capacity_bytes": 1000,
        "consumed_bytes": 50,
        "soft_bytes": 800.0,
        "hard_bytes": float("nan"),
    }
    found = _finished(row, USUAL)
    assert np.asarray(found["low_bytes"]).tolist() == [0.0] * 30
    assert (found["hard_bytes"], found["hard_outlook"]) == (None, "limit of an unknown type")
