"""A look at the volumes: the settings that it asks for, and its notes where some are not known."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from kquota.disks.observation import VolumeObservation
from kquota.disks.segment_scan import SegmentLook
from kquota.disks.segments import BrokerRules
from kquota.disks.server_properties import parse_broker_properties
from kquota.guard.report import CycleReport
from kquota.kafka.admin import Pending
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.policy.volume import VolumeRole
from kquota.retention import topic_sizes_scan as module
from kquota.retention.topic_sizes import Contents
from kquota.retention.topic_sizes_scan import ContentsWatch, broker_rules_of
from kquota.service.topic_sizes_metrics import of_contents
from kquota.settings.model import SegmentsSection
from tests.unit.disks.test_segment_scan_process import segment
from tests.unit.disks.test_segments import DEFAULTS
from tests.unit.guard.cycles import Bench
from tests.unit.policy.golden import complaints

DENIED = KafkaFailure(Kind.ACL_DENIED, "the principal is denied describe-configs")
VOLUME = VolumeObservation("/dev/sda", "id", "/data", "ext4", (), VolumeRole.DATA, 1, 1, None)


@dataclass
class Cluster:
    """Answers an Admin client's questions about topics' settings."""

    settings: Mapping[str, Mapping[str, str]] | KafkaFailure
    asked: list[Sequence[str]] = field(default_factory=list)

    def settings_of_topics(self, names: Sequence[str]) -> Pending[Any]:
        self.asked.append(names)
        found = self.settings
        if isinstance(found, KafkaFailure):
            return Pending(lambda: found)
        return Pending(lambda: {name: found[name] for name in names if name in found})


class HereLook(SegmentLook):
    """Looks without a process: a unit test starts none."""

    def __init__(self, log_dirs: Sequence[str], **_settings: object) -> None:
        from kquota.disks.segment_scan_process import Look, partition_of

        self.problem, self.unreadable_indexes, self._rows = None, 0, list[Any]()
        self._log_dirs = tuple(log_dirs)
        names = [
            (number, path) for number, one in enumerate(log_dirs) for path in sorted(Path(one).iterdir())
        ]
        for number, path in names:
            named = partition_of(path.name)
            assert named is not None
            self._rows.append([number, *named, 0, 0, None, None, Look(0).partition(str(path))[2]])
        self.topics = tuple(sorted({row[1] for row in self._rows}))

    def partitions(self) -> Iterator[Any]:
        yield from map(self._partition, self._rows)

    def close(self) -> None:
        pass


def properties(text: str = "") -> Any:
    return parse_broker_properties(f"node.id=1\n{text}".encode(), Path("server.properties"))


def seen_by_cycle(log_dir: Path) -> CycleReport:
    """The report of a cycle that saw a volume with this log dir."""
    bench = Bench()
    bench.ports.volumes = (replace(VOLUME, log_dirs=(str(log_dir),)),)
    return bench.run()


def looked(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int = 1) -> Contents:
    """The outcome of this many looks at the log dir `tmp_path/1`."""
    monkeypatch.setattr(module, "SegmentLook", HereLook)
    monkeypatch.setattr(module, "FIRST_SECONDS", 0.0)
    settings = SegmentsSection(interval_seconds=0.001)
    watch = ContentsWatch(cluster, settings, properties(), tmp_path / "decision.json")  # type: ignore[arg-type]
    report = seen_by_cycle(tmp_path / "1")
    seen: list[Contents] = []
    end = time.monotonic() + 30
    try:
        while len(seen) < times:
            watch.follow(report)
            if (found := watch.take_unseen()) is not None:
                seen.append(found)
            assert time.monotonic() < end
            time.sleep(0.01)
    finally:
        watch.close()
    return seen[-1]


def test_topics_come_with_their_expiry_and_the_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment(tmp_path / "1" / "kept-0", 0, entries=[(time.time_ns() // 1_000_000, 1)])
    segment(tmp_path / "1" / "old-0", 0, entries=[(1, 1)], blocks=2)
    found = looked(Cluster({"kept": DEFAULTS, "old": DEFAULTS}), tmp_path, monkeypatch, times=2)
    assert found.notes == ()
    assert [one.name for one in found.volumes[0].topics] == ["old", "kept"]
    old, kept = found.volumes[0].topics
    assert (old.soon_bytes, kept.soon_bytes, old.grown_bytes) == (old.size_bytes, 0, 0)
    document = json.loads((tmp_path / "segments.json").read_text("utf-8"))
    assert complaints("segments", document) == []
    figures = {
        (sample.name, *sample.labels.values()): sample.value
        for metric in of_contents(found)
        for sample in metric.samples
    }
    assert figures["kquota_volume_leaving_bytes", "/dev/sda", "10m"] == old.size_bytes
    assert figures["kquota_volume_staying_bytes", "/dev/sda", "unknown"] == 0
    assert figures["kquota_volume_topics", "/dev/sda"] == 2


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (DENIED, DENIED.sentence),
        ({}, "they are not there any more, or the agent's principal may not see their settings"),
        (
            {"t": DEFAULTS | {"retention.ms": "soon"}},
            "t: retention.ms is soon, allowed is a whole number of at least -1",
        ),
    ],
)
def test_settings_that_are_not_known_are_a_stated_reason(
    settings: Any, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment(tmp_path / "1" / "t-0", 0, entries=[(1, 1)])
    found = looked(Cluster(settings), tmp_path, monkeypatch)
    assert found.notes == (f"it is not known when the bytes of 1 topics leave: {why}",)
    assert found.volumes[0].expiry.unknown_bytes == found.volumes[0].expiry.total_bytes > 0


def test_many_topics_are_asked_for_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(205):
        segment(tmp_path / "1" / f"t{number}-0", 0, entries=[])
    cluster = Cluster({f"t{number}": DEFAULTS for number in range(205)})
    found = looked(cluster, tmp_path, monkeypatch)
    assert found.notes == ()
    assert [len(names) for names in cluster.asked[:3]] == [100, 100, 5]


def test_an_interval_of_zero_means_never(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_SECONDS", 0.0)
    watch = ContentsWatch(
        Cluster({}),  # type: ignore[arg-type]
        SegmentsSection(interval_seconds=0),
        properties(),
        tmp_path / "decision.json",
    )
    for _ in range(5):
        watch.follow(seen_by_cycle(tmp_path))
        assert watch.take_unseen() is None
        time.sleep(0.01)
    watch.close()
    assert not (tmp_path / "segments.json").exists()


def test_the_interval_of_the_broker_is_its_property_or_kafka_s_default() -> None:
    assert broker_rules_of(properties()) == BrokerRules(300_000)
    assert broker_rules_of(properties("log.retention.check.interval.ms=1000")) == BrokerRules(1000)
