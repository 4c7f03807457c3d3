"""The broker's own process on this host: the log dirs that it was started with, and those that it holds.

Its command line names its properties file and the overrides. Kafka locks a file in each log dir it runs with,
and the kernel lists these locks by process, device and inode, as the process's mount namespace has them
(proc_locks(5)). Every user may read both, unless /proc hides the processes of others (``hidepid``,
``ProtectProc=`` in a unit): then nothing is known. ``/proc/PID/root`` and ``/proc/PID/ns`` would need a
capability that the agent does not have.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import psutil

from kquota.disks.broker_dirs import Place
from kquota.disks.mountinfo import MountTable, parse_mountinfo
from kquota.disks.server_properties import (
    BrokerProperties,
    BrokerPropertiesError,
    broker_properties_of,
    node_id_of,
    raw_properties,
)

LockFile = tuple[str, int]
"""A file that is locked: "major:minor" of its file system as in the mount table, and its inode."""

_MAIN_CLASS = "kafka.Kafka"
_OVERRIDE = "--override"
_ELSEWHERE: Place = (0, 0)  # no directory has inode 0
# Kafka takes its locks within seconds of its start.
_SETTLING_SECONDS = 30.0
_LOOK_SECONDS = 5.0
# The kernel states the time of its boot, from which that of a process is counted, in whole seconds.
_CLOCK_STEP_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class BrokerProcess:
    """The broker's process, as far as it can be seen.

    ``directories`` are those that its command line and its file name; empty where they can't be judged.
    ``locked`` are the files that it has locked, once it ``has_settled``. ``file_has_changed`` is whether its
    file is newer than the process.
    """

    process_id: int
    directories: tuple[str, ...]
    locked: frozenset[LockFile] = frozenset()
    has_settled: bool = False
    file_has_changed: bool = False

    def used(self, watched: Mapping[str, LockFile | None], mounts: MountTable) -> Mapping[str, Place | None]:
        """Return the log dirs that it runs with, by path, for `with_broker_dirs`; none where all are watched.

        ``watched`` are the directories that are watched, each with the file that Kafka would lock in it:
        inode 0 where there is none, None where that can't be seen.

        A lock on a file of no watched directory proves nothing alone: other code in the process may lock
        files. It counts where a directory that should be locked is not, or where the properties file has
        changed since the start. A directory by another path than those watched counts once it has settled:
        until then it may be the same one.
        """
        others = self.locked - set(watched.values())
        if self.locked and not others:
            return {}
        used: dict[str, Place | None] = dict.fromkeys(
            path for path in self.directories if self.has_settled or path in watched
        )
        if not others:
            return used
        for path in self.directories or watched:
            lock = watched.get(path)
            if lock is not None and lock not in self.locked:
                used[path] = _ELSEWHERE
        if self.file_has_changed:
            devices = {device for device, _ in others}
            used |= {f"a directory on {_mount_point_of(device, mounts)}": None for device in sorted(devices)}
        return used


def _mount_point_of(device: str, mounts: MountTable) -> str:
    """Return where a file system is mounted, as a whole if it is; its device where it is not mounted here."""
    shown = [mount for mount in mounts.mounts if mount.device == device]
    best = min(shown, key=lambda mount: (len(mount.root), mount.mount_point), default=None)
    return device if best is None else best.mount_point


class ProcessWatch:
    """Looks for the broker's process every five seconds, in a thread that lives for one look.

    Reading a command line can wait for a disk, where the process itself waits for it.
    """

    def __init__(self, configured: BrokerProperties) -> None:
        self._configured = configured
        self._latest: BrokerProcess | None = None
        self._thread: threading.Thread | None = None
        self._began_at = -_LOOK_SECONDS

    def latest(self, wait_seconds: float = 0.0) -> BrokerProcess | None:
        """Return what was seen last, None for no process; waits for a look under way, at most this long."""
        now = time.monotonic()
        if now - self._began_at >= _LOOK_SECONDS and (self._thread is None or not self._thread.is_alive()):
            self._began_at = now
            self._thread = threading.Thread(target=self._look, name="kquota-process", daemon=True)
            self._thread.start()
        if wait_seconds and self._thread is not None:
            self._thread.join(wait_seconds)
        return self._latest

    def _look(self) -> None:
        self._latest = find_broker(self._configured)


@dataclass(frozen=True, slots=True)
class _Started:
    """A process of Kafka's main class, with the file and the overrides on its command line."""

    process: psutil.Process
    began_at: float
    file: Path
    overrides: Mapping[str, str] = field(repr=False)


def find_broker(
    configured: BrokerProperties, *, settling_seconds: float = _SETTLING_SECONDS
) -> BrokerProcess | None:
    """Find the process of the broker with these properties; None where it does not run or can't be seen.

    It is the one that was started with the same file and has the same node id, or else the one whose own file
    has the same node id and listeners, since no two can listen there. The youngest counts. Its locks count
    ``settling_seconds`` after its start.
    """
    by_file: list[_Started] = []
    by_listeners: list[_Started] = []
    found: dict[int, BrokerProcess] = {}
    for started in _started():
        with suppress(psutil.Error, OSError, ValueError):
            is_ours = _is_same(started.file, configured.path)
            modified_at = started.file.stat().st_mtime
            is_newer = modified_at > started.began_at + _CLOCK_STEP_SECONDS
            # Of a file that has changed since, what the agent has read may be what the broker has read.
            base = configured.raw if is_ours and is_newer else raw_properties(started.file)
            raw = {**base, **started.overrides}
            same_listeners = raw.get("listeners") == configured.raw.get("listeners")
            if node_id_of(raw, started.file) != configured.node_id or not (is_ours or same_listeners):
                continue
            (by_file if is_ours else by_listeners).append(started)
            has_settled = time.time() - started.began_at >= settling_seconds
            process_id = started.process.pid
            found[process_id] = BrokerProcess(
                process_id,
                _directories(raw, started.file),
                _locked_by(process_id) if has_settled else frozenset(),
                has_settled,
                is_ours and is_newer,
            )
    ours = by_file or by_listeners
    return found[max(ours, key=lambda one: (one.began_at, one.process.pid)).process.pid] if ours else None


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """The properties file that a broker of this host was started with, and its overrides."""

    file: Path
    overrides: Mapping[str, str] = field(repr=False)


def running_brokers() -> list[RunningBroker]:
    """Return the brokers that run on this host and can be seen."""
    return [
        RunningBroker(Path(os.path.normpath(started.file)), dict(started.overrides)) for started in _started()
    ]


def _started() -> Iterator[_Started]:
    """Yield the brokers that can be seen, without those of containers: their paths mean nothing here."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError, ValueError):
            command = process.cmdline()
            if _MAIN_CLASS not in command[:-1]:
                continue
            file, *arguments = command[command.index(_MAIN_CLASS) + 1 :]
            if _root_of(str(process.pid)) == _root_of("self"):
                path = Path(file if file.startswith("/") else f"{process.cwd()}/{file}")
                yield _Started(process, process.create_time(), path, _overrides(arguments))


def _root_of(process: str) -> tuple[str, str] | None:
    root = parse_mountinfo(Path(f"/proc/{process}/mountinfo").read_text("utf-8", "replace")).mount_of("/")
    return None if root is None else (root.device, root.root)


def _overrides(arguments: Sequence[str]) -> dict[str, str]:
    """Return what ``--override key=value`` and ``--override=key=value`` set; the last one counts."""
    given = [value for option, value in pairwise(arguments) if option == _OVERRIDE]
    given += [one.removeprefix(f"{_OVERRIDE}=") for one in arguments if one.startswith(f"{_OVERRIDE}=")]
    return dict(one.partition("=")[::2] for one in given)


def _is_same(path: Path, configured: Path) -> bool:
    return os.path.normpath(path) == os.path.normpath(configured) or path.samefile(configured)


def _directories(raw: Mapping[str, str], path: Path) -> tuple[str, ...]:
    try:
        return tuple(map(str, broker_properties_of(raw, path).directories))
    except BrokerPropertiesError:  # as for paths that are relative
        return ()


def _locked_by(process_id: int) -> frozenset[LockFile]:
    """Return the files that a process has locked as Java locks a channel."""
    locked = set()
    try:
        lines = Path("/proc/locks").read_text("ascii").splitlines()
    except OSError:
        return frozenset()
    for line in lines:
        match line.split():
            case [_, "POSIX", _, "WRITE", owner, file, *_] if owner == str(process_id):
                major, minor, inode = file.split(":")
                locked.add((f"{int(major, 16)}:{int(minor, 16)}", int(inode)))
    return frozenset(locked)
