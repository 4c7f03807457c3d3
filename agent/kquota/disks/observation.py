"""The present state of this broker's volumes: the value that the rest of the agent works on."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import NamedTuple

from kquota.policy.topic_scope import Topics
from kquota.policy.volume import VolumeRole, VolumeStatus

UNKNOWN = "unknown"
"""The type of a file system that was never seen."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a volume can't be judged; ``log_dir`` is the directory concerned, None for the whole volume."""

    log_dir: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class LimitsProblem:
    """The problem of a path of ``limits.volumes`` on this host, and what is allowed."""

    path: str
    wrong: str
    allowed: str

    def __str__(self) -> str:
        return f"limits.volumes.{self.path} {self.wrong}; allowed: {self.allowed}"


class InodeCount(NamedTuple):
    """All inodes of a file system with a fixed number of them, and those available to the broker's user."""

    total: int
    free: int


@dataclass(frozen=True, slots=True)
class VolumeObservation:
    """One volume (file system) behind the broker's log dirs.

    ``name`` is unique within the broker, ``volume_id`` identifies this file system, also across
    restarts. ``log_dirs`` are all its directories as configured. ``consumed_bytes`` is the capacity less
    the space available to an unprivileged user, so blocks reserved for the super-user count as consumed
    (the Strimzi proposal has Capacity and Consumed; available to *which* user is decided here). Both figures
    are None where none was ever known; of a failed volume they are the last known ones.
    ``sampled_at_monotonic`` is their time on CLOCK_MONOTONIC, in seconds; None where it is not known.
    ``limits_path`` is the path of ``limits.volumes`` that is for this volume, None where none is. ``topics``
    are those with a partition on it, None where they are not asked for or not all known. ``inodes`` are None
    where the file system makes them as it needs them.
    """

    name: str
    volume_id: str
    mount_point: str
    fs_type: str
    log_dirs: tuple[str, ...]
    role: VolumeRole
    capacity_bytes: int | None
    consumed_bytes: int | None
    sampled_at_monotonic: float | None
    failures: tuple[Failure, ...] = ()
    offline_log_dirs: tuple[str, ...] = ()
    limits_path: str | None = None
    topics: Topics | None = None
    inodes: InodeCount | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether its log dir has never been found on any file system."""
        return self.fs_type == UNKNOWN

    @property
    def status(self) -> VolumeStatus:
        """Whether the volume can be judged: offline (all its log dirs, by the broker), failed, or ok."""
        if self.offline_log_dirs and set(self.log_dirs) <= set(self.offline_log_dirs):
            return VolumeStatus.OFFLINE
        return VolumeStatus.FAILED if self._effective_failures else VolumeStatus.OK

    @property
    def reason(self) -> str | None:
        """Why the volume is not ok, in one sentence; None if it is."""
        if self.status is VolumeStatus.OFFLINE:
            reasons = ["the broker has taken all its log dirs offline"]
            reasons += [failure.reason for failure in self.failures]
        else:
            reasons = [failure.reason for failure in self._effective_failures]
        return "; ".join(dict.fromkeys(reasons)) or None

    @property
    def _effective_failures(self) -> tuple[Failure, ...]:
        """Failures that count: the broker runs on without a log dir that it has taken offline."""
        return tuple(failure for failure in self.failures if failure.log_dir not in self.offline_log_dirs)


@dataclass(frozen=True, slots=True)
class Observation:
    """All volumes of this broker, in order of the configured log dirs, and what an operator should know.

    ``limits_problems`` are among the warnings, too.
    """

    volumes: tuple[VolumeObservation, ...]
    warnings: tuple[str, ...] = ()
    limits_problems: tuple[LimitsProblem, ...] = ()


def with_offline(observation: Observation, offline_log_dirs: Collection[str]) -> Observation:
    """Merge in the log dirs that the broker itself has taken offline (absolute paths, as it names them).

    A volume all of whose log dirs are offline becomes ``offline``; one with a part of them offline is judged
    by the rest, with a warning. A path that is no log dir of this observation is a warning too.
    """
    offline = {os.path.normpath(path) for path in offline_log_dirs}
    warnings = list(observation.warnings)
    volumes = []
    known: set[str] = set()
    for volume in observation.volumes:
        known.update(map(os.path.normpath, volume.log_dirs))
        gone = tuple(log_dir for log_dir in volume.log_dirs if os.path.normpath(log_dir) in offline)
        if gone and len(gone) < len(volume.log_dirs):
            warnings.append(
                f"{volume.name}: the broker has taken {', '.join(gone)} offline and runs on without it"
            )
        volumes.append(replace(volume, offline_log_dirs=gone))
    warnings += [
        f"the broker reports {path} offline, which is no log dir of it" for path in sorted(offline - known)
    ]
    return replace(observation, volumes=tuple(volumes), warnings=tuple(warnings))
