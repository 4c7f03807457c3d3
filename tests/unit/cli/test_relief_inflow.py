"""Which replicas come to a volume, and how fast, by their directories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from kquota.cli import relief_inflow
from kquota.cli.relief_inflow import measure_inflow
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.retention.inflow import Inflow

ID = "0123456789abcdef" * 2
DENIED = KafkaFailure(Kind.ACL_DENIED, "denied")


class Answer:
    def __init__(self, value: object) -> None:
        self.value = value

    def result(self) -> Any:
        return self.value


class Connection:
    """Answers of a cluster in which replicas of broker 1 are behind."""

    def __init__(self, behind: object, broker: Mapping[str, str] | None = None) -> None:
        self.behind, self.broker = behind, broker or {}

    def metadata(self, _read: Callable[[Any], Any]) -> Answer:
        return Answer(self.behind)

    def topic_settings(self, topic: str) -> Answer:
        found = {"follower.replication.throttled.replicas": "0:2"} if topic == "a" else DENIED
        return Answer(found)

    def broker_settings(self, _broker_id: int) -> Answer:
        return Answer(self.broker)


class Disk:
    """A log dir whose replicas grow by a block each second from a moment on."""

    def __init__(self, log_dir: Path, growing: Mapping[str, float]) -> None:
        self.log_dir, self.growing, self.now = log_dir, growing, 0.0
        for name in growing:
            (log_dir / name).mkdir()
            self._add(name)

    def _add(self, name: str) -> None:
        with (self.log_dir / name / "00000000000000000000.log").open("ab") as file:
            file.write(b"x" * 4096)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for name, begins in self.growing.items():
            if self.now >= begins:
                self._add(name)


def measured(disk: Disk, connection: Connection) -> Inflow | None:
    log_dirs = [str(disk.log_dir)]
    return measure_inflow(log_dirs, cast("Any", connection), 1, disk.sleep, lambda: disk.now)


def test_replicas_that_are_behind_and_copies_are_measured(tmp_path: Path) -> None:
    disk = Disk(tmp_path, {"a-0": 0, "b-1": 0, f"c-2.{ID}-future": 0, "d-3": 0})
    found = measured(disk, Connection(frozenset({"a-0", "b-1", "elsewhere-9"})))
    assert found is not None
    assert (found.replication, found.copies) == ({"a-0": 4096, "b-1": 4096}, {"c-2": 4096})
    assert (found.throttled, found.throttle, disk.now) == ({"a": "0:2"}, None, 5.0)
    assert found.free_bytes > 0
    rate = {"follower.replication.throttled.rate": "77"}
    again = measured(disk, Connection(frozenset({"a-0"}), rate))
    assert again is not None
    assert again.throttle == 77


def test_a_burst_is_waited_for(tmp_path: Path) -> None:
    disk = Disk(tmp_path, {"a-0": 9})
    found = measured(disk, Connection(frozenset({"a-0"})))
    assert found is not None
    assert (found.replication, disk.now) == ({"a-0": 455}, 9.0)


def test_a_replica_that_gets_nothing_fills_nothing(tmp_path: Path) -> None:
    disk = Disk(tmp_path, {"a-0": 99})
    assert measured(disk, Connection(frozenset({"a-0"}))) is None
    assert disk.now == relief_inflow.PATIENCE_SECONDS


@pytest.mark.parametrize("behind", [frozenset(), frozenset({"b-0"}), DENIED])
def test_where_no_replica_is_behind_nothing_is_waited_for(tmp_path: Path, behind: object) -> None:
    disk = Disk(tmp_path, {"a-0": 0})
    assert measured(disk, Connection(behind)) is None
    assert disk.now == 0


def test_a_disk_that_is_gone_is_not_measured(tmp_path: Path) -> None:
    disk = Disk(tmp_path, {})
    disk.log_dir = tmp_path / "gone"
    assert measured(disk, Connection(frozenset({"a-0"}))) is None
