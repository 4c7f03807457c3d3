"""Where a broker's replicas are, by the names of their directories."""

from __future__ import annotations

from pathlib import Path

from kquota.disks.replica_dirs import ReplicaDir, copied_replicas, replica_dirs
from kquota.disks.segments import PartitionState

ID = "0123456789abcdef" * 2


def make(log_dir: Path, name: str, size_bytes: int) -> None:
    (log_dir / name).mkdir(parents=True)
    with (log_dir / name / "00000000000000000000.log").open("wb") as file:
        file.write(b"x" * size_bytes)


def test_all_directories_of_a_replica_are_found_with_their_sizes(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    make(first, "a-0", 8192)
    make(second, f"a-0.{ID}-future", 4096)
    make(first, f"b-1.{ID}-delete", 4096)
    make(second, "b-1", 4096)
    make(second, "c-2", 4096)
    (first / "meta.properties").touch()
    log_dirs = [str(first), str(second)]
    assert replica_dirs(log_dirs, ["a-0", "b-1", "gone-7"]) == {
        "a-0": (
            ReplicaDir(str(first), PartitionState.LOG, 8192),
            ReplicaDir(str(second), PartitionState.FUTURE, 4096),
        ),
        "b-1": (
            ReplicaDir(str(first), PartitionState.DELETED, 4096),
            ReplicaDir(str(second), PartitionState.LOG, 4096),
        ),
        "gone-7": (),
    }
    assert copied_replicas(log_dirs) == {"a-0"}
