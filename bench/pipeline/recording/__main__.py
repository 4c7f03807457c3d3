"""`make record-history`: an hour of a real broker, as 150 days, kept as a sample."""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from pathlib import Path

from confluent_kafka import KafkaException

from bench.pipeline.recording.broker import (
    Traffic,
    cluster_of,
    cpu_seconds,
    days_since,
    hours_since,
    read_history,
    start_agent,
)
from bench.pipeline.recording.pace import DAY_HOURS, HOUR_SECONDS, SCALE
from bench.pipeline.recording.plan import Change, changes
from bench.pipeline.recording.sample import (
    KINDS,
    SAMPLE,
    RecordedTopic,
    RecordedVolume,
    Recording,
    write_sample,
)
from testbed.loopback.cluster import KafkaCluster
from testbed.loopback.runtime import DEFAULT_KAFKA_VERSION, ensure_kafka_runtime
from testbed.loopback.volumes import require_loop_volumes

_TICK_SECONDS = 0.25
_REPORT_SECONDS = 60.0
_LAST_RECORDS_SECONDS = 5.0


def main() -> None:
    """Record for some minutes, or until SIGTERM or Ctrl-C, and write the sample."""
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline.recording", description=__doc__)
    how_long = "how long to record, 60 at most (default: 60)"
    parser.add_argument("--minutes", type=float, default=60.0, help=how_long)
    parser.add_argument("--to", type=Path, default=SAMPLE, help="the file to write")
    options = parser.parse_args()
    require_loop_volumes()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with cluster_of(ensure_kafka_runtime(report=_say), _say) as cluster:
        recording, records = _record(cluster, 60 * options.minutes)
    size = write_sample(options.to, recording, records)
    _say(f"{len(records):,} records, {size:,} bytes in {options.to}")


def _record(cluster: KafkaCluster, seconds: float) -> tuple[Recording, list[bytes]]:
    traffic = Traffic(cluster)
    traffic.make_all()
    agent = start_agent(cluster)
    began, began_at = time.monotonic(), time.time()
    kafka = [node.pid for node in cluster.brokers]
    others = [agent.pid, os.getpid()]
    before = cpu_seconds(kafka), cpu_seconds(others)
    try:
        _run(traffic, began, seconds)
    except (KeyboardInterrupt, KafkaException) as error:
        _say(f"ended early, and keeps what there is: {error!r}")
    passed = time.monotonic() - began
    used = cpu_seconds(kafka) - before[0], cpu_seconds(others) - before[1]
    traffic.end()
    if agent.exit_code() is not None:
        raise RuntimeError(f"the agent ended:\n{agent.log_tail()}")
    time.sleep(_LAST_RECORDS_SECONDS)
    records = [record for record in read_history(cluster) if _kind(record) in KINDS]
    cores = f"cores: Kafka {used[0] / passed:.2f}, rest {used[1] / passed:.2f}"
    _say(f"{traffic.bytes / passed / 1e6:.1f} MB/s; {cores}")
    root = str(cluster.path)
    places = traffic.places
    later = [one for one in changes(places.all_loads) if one.day * DAY_HOURS * HOUR_SECONDS <= passed]
    recording = Recording(
        DEFAULT_KAFKA_VERSION,
        SCALE,
        began_at,
        passed,
        used[0] / passed,
        used[1] / passed,
        tuple(
            RecordedVolume(volume.family, log_dir.removeprefix(root), volume.surprises, volume.new_days)
            for log_dir, volume in places.by_log_dir.items()
        ),
        tuple(
            RecordedTopic(
                topic, places.log_dirs[topic].removeprefix(root), load.settings, _changed(topic, later)
            )
            for topic, load in places.loads.items()
        ),
    )
    # Where the test bed had its directory says nothing.
    return recording, [record.replace(root.encode(), b"") for record in records]


def _run(traffic: Traffic, began: float, seconds: float) -> None:
    waiting = sorted(changes(traffic.places.all_loads))
    at, said_at = 0.0, began
    while time.monotonic() < began + seconds:
        now = hours_since(began)
        traffic.write(at, now)
        at = now
        for topic in traffic.begin_new(days_since(began)):
            _say(f"day {days_since(began):.1f}: {topic} is new")
        while waiting and waiting[0].day <= days_since(began):
            _change(traffic, waiting.pop(0))
        if time.monotonic() >= said_at + _REPORT_SECONDS:
            said_at += _REPORT_SECONDS
            _say(f"day {days_since(began):.1f}, {traffic.bytes / 1e6:,.0f} MB written")
        time.sleep(_TICK_SECONDS)


def _change(traffic: Traffic, change: Change) -> None:
    what = "deleted" if change.keep_hours is None else f"kept for {change.keep_hours:g} hours"
    _say(f"day {change.day:.1f}: {change.topic} is {what}")
    traffic.keep(change.topic, change.keep_hours)


def _changed(topic: str, later: list[Change]) -> tuple[tuple[float, str | None], ...]:
    return tuple((one.day, one.retention_ms) for one in later if one.topic == topic)


def _kind(record: bytes) -> str:
    return str(json.loads(record)["Kind"])


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
