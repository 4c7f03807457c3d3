"""The look at the segments of a broker that has as many as a broker can be expected to have."""

from __future__ import annotations

import os
import resource
import struct
import tempfile
import time
from pathlib import Path

import psutil

from bench.figures import SegmentsCost
from kquota.disks.segment_scan import FILES_PER_SECOND, SegmentLook
from kquota.disks.segments import BrokerRules, topic_rules
from kquota.retention.topic_sizes import ContentsCount

_PARTITIONS_OF_A_TOPIC = 10
_SEGMENTS_OF_A_PARTITION = 50
_LOG_BYTES, _INDEX_BYTES, _TIME_INDEX_BYTES, _PREALLOCATED_BYTES = 1 << 30, 524_288, 786_432, 10_485_756
_LOOK_EVERY = 20  # partitions
_SUFFIXES = (".log", ".index", ".timeindex", ".snapshot")
_SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "segment.ms": "604800000",
    "segment.bytes": str(_LOG_BYTES),
    "file.delete.delay.ms": "60000",
}


def segments(count: int) -> SegmentsCost:
    """Make this many segments, each of four sparse files, and look at them as an agent does by default.

    Only the priority is another one: the look does not give way to other work on this machine.

    Raises:
        RuntimeError: the look did not come to its end.
    """
    with tempfile.TemporaryDirectory() as folder:
        _make(Path(folder), count)
        rules, total = topic_rules(_SETTINGS), ContentsCount(BrokerRules(300_000))
        begun, used, ended = time.monotonic(), time.process_time(), _of_children()
        seen = memory_bytes = 0
        with SegmentLook([folder], files_per_second=FILES_PER_SECOND) as look:
            process = psutil.Process(look.process_id)
            for number, partition in enumerate(look.partitions()):
                total.add(partition, rules, time.time_ns() // 1_000_000)
                seen += len(partition.segments)
                if not number:
                    process.nice(0)
                if number % _LOOK_EVERY == 0 and process.is_running():
                    memory_bytes = max(memory_bytes, process.memory_info().rss)
        if look.problem is not None or seen != count:
            raise RuntimeError(f"{seen} of {count} segments were looked at: {look.problem}")
        seconds = time.monotonic() - begun
        after = _of_children()
        return SegmentsCost(
            seen,
            look.files,
            seconds,
            (after.ru_utime + after.ru_stime - ended.ru_utime - ended.ru_stime) / seconds,
            (time.process_time() - used) / seconds,
            memory_bytes,
        )


def _of_children() -> resource.struct_rusage:
    return resource.getrusage(resource.RUSAGE_CHILDREN)


def _make(folder: Path, count: int) -> None:
    now_ms = time.time_ns() // 1_000_000
    for number in range(count // _SEGMENTS_OF_A_PARTITION):
        topic, partition = divmod(number, _PARTITIONS_OF_A_TOPIC)
        directory = folder / f"topic{topic}-{partition}"
        directory.mkdir()
        for segment in range(_SEGMENTS_OF_A_PARTITION):
            is_active = segment == _SEGMENTS_OF_A_PARTITION - 1
            base = str(directory / f"{segment * 1000:020}")
            entry = struct.pack(">qi", now_ms - segment * 60_000, 999)
            sizes = (_LOG_BYTES, _INDEX_BYTES, _PREALLOCATED_BYTES if is_active else _TIME_INDEX_BYTES, 0)
            for suffix, size in zip(_SUFFIXES, sizes, strict=True):
                file = os.open(base + suffix, os.O_CREAT | os.O_WRONLY)
                os.ftruncate(file, size)
                if suffix == ".timeindex":
                    os.pwrite(file, entry, 0 if is_active else size - len(entry))
                os.close(file)
