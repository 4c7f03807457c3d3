"""The directories of single replicas on a broker's log dirs: where each is, and how far its copy has come."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kquota.disks.segment_scan_process import partition_of
from kquota.disks.segments import PartitionState
from kquota.disks.topic_growth import files_bytes


@dataclass(frozen=True, slots=True)
class ReplicaDir:
    """A directory of a replica; ``size_bytes`` is what it takes of the disk."""

    log_dir: str
    state: PartitionState
    size_bytes: int


def replica_dirs(log_dirs: Iterable[str], names: Collection[str]) -> Mapping[str, tuple[ReplicaDir, ...]]:
    """Return all directories of these partitions, named as in ``visits-3``.

    Raises:
        OSError: a log dir can't be listed.
    """
    found: dict[str, tuple[ReplicaDir, ...]] = dict.fromkeys(names, ())
    for log_dir, entry, name, state in _directories(log_dirs):
        if name in found:
            found[name] += (ReplicaDir(log_dir, state, files_bytes(entry)),)
    return found


def size_in(dirs: Iterable[ReplicaDir], state: PartitionState) -> int:
    """Return the bytes of the directories in this state."""
    return sum(one.size_bytes for one in dirs if one.state is state)


def copied_replicas(log_dirs: Iterable[str]) -> frozenset[str]:
    """Return the partitions that a move between log dirs is copying.

    Raises:
        OSError: a log dir can't be listed.
    """
    return frozenset(name for _, _, name, state in _directories(log_dirs) if state is PartitionState.FUTURE)


def _directories(log_dirs: Iterable[str]) -> Iterator[tuple[str, Path, str, PartitionState]]:
    for log_dir in log_dirs:
        for entry in Path(log_dir).iterdir():
            place = partition_of(entry.name)
            if place is not None:
                topic, partition, state = place
                yield log_dir, entry, f"{topic}-{partition}", PartitionState(state)
