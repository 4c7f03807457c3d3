"""The plan of a recording fits its volumes, and has the rules of Kafka at another pace."""

from __future__ import annotations

import pytest

from bench.pipeline.recording.agent import shortened
from bench.pipeline.recording.pace import HOUR_SECONDS, milliseconds
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
    new_days,
    topics_at_start,
)
from kquota.core.expiry import BUCKETS, DAY_MS

LAST_DAY = 75  # of the longest recording, thirty minutes
ROOM = 0.92  # of a volume, less what ext4 needs for itself
HOURS = range(LAST_DAY * 24)


def held_bytes(name: str, load: Load) -> list[float]:
    """Return the bytes of a topic by hour as its settings keep them, a whole segment too many at most."""
    came = [load.bytes_per_hour(name, hour) for hour in HOURS]
    if load.keys and load.keep_hours is None:
        return [4 * load.keys * 4_000.0] * len(came)
    if load.by_size:
        return [load.share * DISK_BYTES + MEBI] * len(came)
    if load.keep_hours is None:
        return [sum(came[: hour + 1]) for hour in HOURS]
    roll = load.roll_hours if load.segment_bytes > MEBI else MEBI / load.usual_bytes_per_hour
    kept = round(max(load.keep_hours, *(hours for _, hours in load.kept), 0) + roll)
    return [sum(came[max(0, hour - kept) : hour + 1]) for hour in HOURS]


@pytest.mark.parametrize("number", range(len(VOLUMES)))
def test_no_volume_runs_full_and_each_is_used(number: int) -> None:
    volume = VOLUMES[number]
    loads = [*volume.loads, *([volume.new[1]] if volume.new else [])]
    held = [held_bytes(f"{i}", load) for i, load in enumerate(loads)]
    by_hour = [sum(parts) for parts in zip(*held, strict=True)]
    assert max(by_hour) < ROOM * VOLUME_BYTES
    assert max(by_hour[FULL_DAYS * 24 :]) > 0.4 * VOLUME_BYTES


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
    assert Load(share=0.1, by_size=True).settings["retention.bytes"] == "6000000"
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
    volumes = (Volume(family="a", loads=(first, second)), Volume(family="b", loads=(first,), new=(3, new)))
    places = Places(volumes)
    assert topics_at_start(places.volumes) == 4
    assert [places.take(f"t{i}", log_dir) for i, log_dir in enumerate("xyxy")] == [first, first, second, None]
    assert places.log_dirs == {"t0": "x", "t1": "y", "t2": "x"}
    assert places.begin_new(3) == ("t3", new)
    assert places.log_dirs["t3"] == "y"
    with pytest.raises(ValueError, match="no topic waits for day 4"):
        places.begin_new(4)


def test_what_changes_comes_in_order_and_after_the_beginning() -> None:
    loads = {f"t{i}": load for i, load in enumerate(load for volume in VOLUMES for load in volume.loads)}
    found = sorted(changes(loads))
    assert [change.day for change in found] == sorted(change.day for change in found)
    assert {change.keep_hours for change in found} == {72, 96, None}
    assert min(*new_days(), *(change.day for change in found)) > FULL_DAYS
    assert Change(1, "t", 72).retention_ms == milliseconds(72)
    assert all(day > FULL_DAYS for volume in VOLUMES for day in volume.surprises)
