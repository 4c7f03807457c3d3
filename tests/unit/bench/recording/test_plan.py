"""The plan of a recording fits its volumes, and has the rules of Kafka at another pace."""

from __future__ import annotations

from functools import cache

import pytest

from bench.pipeline.recording.agent import shortened
from bench.pipeline.recording.pace import AGENT_SETTINGS, HOUR_SECONDS, milliseconds
from bench.pipeline.recording.plan import (
    DISK_BYTES,
    FULL_DAYS,
    MEBI,
    VOLUME_BYTES,
    VOLUMES,
    WEEK_HOURS,
    Change,
    Load,
    Places,
    Volume,
    changes,
    topics_at_start,
)
from kquota.core.expiry import BUCKETS, DAY_MS

LAST_DAY = 150  # of the longest recording, an hour
ROOM = 0.9  # of a volume, less what ext4 needs for itself
HOURS = range(LAST_DAY * 24)


def held_bytes(name: str, load: Load, begins: float = 0.0) -> list[float]:
    """Return the bytes of a topic by hour as its settings keep them, a whole segment too many at most."""
    ends = LAST_DAY if load.deleted_day is None else load.deleted_day
    there = [begins * 24 <= hour < ends * 24 for hour in HOURS]
    summed = [0.0]
    for hour in HOURS:
        summed.append(summed[-1] + there[hour] * load.bytes_per_hour(name, hour))
    if load.keys and load.keep_hours is None:
        return [4.0 * load.keys * 4_000] * len(HOURS)
    if load.by_size:
        return [load.share * DISK_BYTES + MEBI] * len(HOURS)
    if load.keep_hours is None:
        return summed[1:]
    roll = load.roll_hours if load.segment_bytes > MEBI else MEBI / load.usual_bytes_per_hour
    kept = [load.keep_hours] * len(HOURS)
    for day, hours in load.kept:
        kept[int(day * 24) :] = [hours] * (len(HOURS) - int(day * 24))
    return [
        there[hour] * (summed[hour + 1] - summed[max(0, round(hour - kept[hour] - roll))]) for hour in HOURS
    ]


@cache
def shares_by_hour(number: int) -> list[float]:
    """Return the share of its capacity that a volume holds in each hour, somewhat too much."""
    volume = VOLUMES[number]
    held = [held_bytes(f"{number}-{i}", load) for i, load in enumerate(volume.loads)]
    held += [held_bytes(f"{number}-{day:g}", load, day) for day, load in volume.new]
    return [sum(parts) / (ROOM * VOLUME_BYTES) for parts in zip(*held, strict=True)]


@pytest.mark.parametrize("number", range(len(VOLUMES)))
def test_no_volume_runs_full_and_each_is_used(number: int) -> None:
    assert max(shares_by_hour(number)) < 0.97
    assert max(shares_by_hour(number)[FULL_DAYS * 24 :]) > 0.5


def test_some_volumes_pass_the_soft_limit_and_steady_ones_stay_away_from_it() -> None:
    soft = 1 - AGENT_SETTINGS["limits"]["soft"]["level"] / 100  # type: ignore[index]
    highest = {
        number: max(shares_by_hour(number)[FULL_DAYS * 24 :])
        for number, volume in enumerate(VOLUMES)
        if volume.family != "compacted"  # of which a bound alone is known
    }
    passing = {number for number, share in highest.items() if share > soft}
    assert 4 <= len(passing) <= len(VOLUMES) // 2 + 2
    for number in highest.keys() - passing:
        assert highest[number] < 0.95 * soft, VOLUMES[number].family


def test_the_longest_retention_is_reached_before_the_history_that_is_judged() -> None:
    longest = max(load.keep_hours or 0 for volume in VOLUMES for load in volume.loads)
    assert longest == WEEK_HOURS < FULL_DAYS * 24


def test_a_week_of_traffic_is_what_the_retention_comes_to_hold() -> None:
    load = Load(share=0.1, keep_hours=WEEK_HOURS, weekend=1.0)
    came = sum(load.bytes_per_hour("t", hour) for hour in range(WEEK_HOURS))
    assert came == pytest.approx(0.1 * DISK_BYTES, rel=0.1)


def test_settings_are_those_of_kafka_at_the_pace_of_the_recording() -> None:
    kept = Load(share=0.1, keep_hours=72, roll_hours=24).settings
    assert kept["retention.ms"] == milliseconds(72) == str(round(72 * HOUR_SECONDS * 1000))
    assert (kept["cleanup.policy"], kept["retention.bytes"], kept["segment.ms"]) == ("delete", "-1", "24000")
    assert Load(share=0.1, by_size=True).settings["retention.bytes"] == str(int(0.1 * DISK_BYTES))
    assert Load(share=0.1, keys=10).settings["cleanup.policy"] == "compact"
    assert Load(share=0.1, keys=10, keep_hours=1).settings["cleanup.policy"] == "compact,delete"


def test_the_agent_s_buckets_are_as_much_shorter_as_the_days() -> None:
    found = shortened(BUCKETS)
    assert list(found) == list(BUCKETS)
    assert found["7d"] * 24 * 3600 == pytest.approx(
        BUCKETS["7d"] / DAY_MS * 24 * HOUR_SECONDS * DAY_MS, rel=1e-6
    )


def test_a_topic_gets_the_next_load_of_the_volume_that_kafka_has_put_it_on() -> None:
    first, second, new = (Load(share=share, keep_hours=24) for share in (0.1, 0.2, 0.3))
    volumes = (Volume(family="a", loads=(first, second)), Volume(family="b", loads=(first,), new=((3, new),)))
    places = Places(volumes)
    assert topics_at_start(places.volumes) == 4
    # The one that is new later has its settings at once, and its load later.
    assert [places.take(f"t{i}", log_dir) for i, log_dir in enumerate("xyxy")] == [first, first, second, new]
    assert places.log_dirs == {"t0": "x", "t1": "y", "t2": "x", "t3": "y"}
    assert places.all_loads == {"t0": first, "t1": first, "t2": second, "t3": new}
    assert places.loads.keys() == {"t0", "t1", "t2"}
    assert [places.begin_due(day) for day in (2.9, 3.1, 3.2)] == [[], ["t3"], []]
    assert places.loads["t3"] == new


def test_topics_beyond_the_plan_stay_empty() -> None:
    load = Load(share=0.1, keep_hours=24)
    places = Places((Volume(family="a", loads=(load,)), Volume(family="b", loads=(load, load))))
    assert [places.take(f"t{i}", log_dir) for i, log_dir in enumerate("xyxy")] == [load, load, None, load]
    assert places.log_dirs.keys() == {"t0", "t1", "t3"}


def test_what_changes_comes_in_order_and_after_the_beginning() -> None:
    loads = [load for volume in VOLUMES for load in (*volume.loads, *(new for _, new in volume.new))]
    found = sorted(changes({f"t{i}": load for i, load in enumerate(loads)}))
    assert [change.day for change in found] == sorted(change.day for change in found)
    assert {change.keep_hours for change in found} >= {24, 72, 96, None}
    assert min(change.day for change in found) > FULL_DAYS
    assert Change(1, "t", 72).retention_ms == milliseconds(72)
    assert all(day > FULL_DAYS for volume in VOLUMES for day in volume.surprises)
    for volume in VOLUMES:
        assert set(volume.new_days) <= set(volume.surprises)
        # A new topic is not there for the whole of a recording, and no two begin together.
        assert all(
            (load.deleted_day or LAST_DAY) < later
            for (_, load), (later, _) in zip(volume.new, volume.new[1:], strict=False)
        )
