"""One directory that owns everything a loopback cluster makes: processes, mounts, loop devices, files.

The parts of a workspace are visible from outside: its processes carry its path in their environment, its
mounts and loop images lie below it. So one function, `clear`, ends all of it, for any caller:

- the owner, when it leaves the `with` block, however it leaves it;
- a janitor process, when the owner is gone without having done so (SIGKILL, SIGTERM, a second Ctrl-C);
- the next owner, when even the janitor was killed: it clears workspaces whose lock is free.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Self

import psutil

ENVIRONMENT_MARK = "LOOPBACK_KAFKA_WORKSPACE"
"""Environment variable that names the workspace a process belongs to (KQUOTA_… are the agent's settings)."""

MARKER = ".kquota-workspace.json"
"""File in a workspace that makes it one; its owner holds a lock on it."""

_PREFIX = "kquota-"
_PATIENCE_SECONDS = 10.0
_ELSEWHERE_SECONDS = 2.0
"""An unmounted file system is let go of within that time, unless it is mounted in another namespace, too."""
_CLEAN_LOOKS = 3
"""A process in the middle of an exec has no environment for a moment: one clean look proves nothing."""


def default_root() -> Path:
    """Where workspaces are made: /var/tmp, because /tmp may be memory (LOOPBACK_KAFKA_ROOT overrides)."""
    return Path(os.environ.get("LOOPBACK_KAFKA_ROOT", "/var/tmp"))


class WorkspaceNotCleared(Exception):
    """Something of a workspace could not be removed; the message names it."""


class Workspace:
    """A directory that is gone with all that was started and mounted in it when the `with` block ends.

    With `keep`, the files stay for inspection; processes, mounts and loop devices still go.
    """

    def __init__(self, root: Path | None = None, *, keep: bool = False) -> None:
        self.root = root if root is not None else default_root()
        self.keep = keep
        self.path = Path()
        self._lock: IO[str] | None = None
        self._janitor: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        clear_abandoned(self.root)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self.root)).resolve()
        try:
            # Locked before it has its name: it must never be found without its lock while we live.
            nameless = self.path / f"{MARKER}.new"
            self._lock = nameless.open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            json.dump({"owner_pid": os.getpid()}, self._lock)
            self._lock.flush()
            nameless.rename(self.path / MARKER)
            self._janitor = _start_janitor(self.path)
        except BaseException:
            shutil.rmtree(self.path)
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        assert self._janitor is not None
        assert self._janitor.stdin is not None
        assert self._lock is not None
        elsewhere = clear(self.path, keep_files=self.keep)  # if this is interrupted the janitor does it
        if elsewhere:
            print(
                f"note: {', '.join(elsewhere)}: detached, but still mounted in the namespace of another"
                " process, such as a container; freed when that ends",
                file=sys.stderr,
            )
        self._lock.close()
        self._janitor.stdin.close()
        self._janitor.wait()

    def environment(self) -> dict[str, str]:
        """The environment that makes a process part of this workspace."""
        return {**os.environ, ENVIRONMENT_MARK: str(self.path)}


def clear(path: Path, *, keep_files: bool = False, patience_seconds: float = _PATIENCE_SECONDS) -> list[str]:
    """End processes, unmount, detach loop devices and remove files of the workspace at `path`.

    Returns the loop devices that are detached as far as this namespace goes, but still mounted in another
    one: a container that started meanwhile took a copy of all mounts. The kernel frees them when it ends.

    Raises:
        WorkspaceNotCleared: something resisted for `patience_seconds`; no file below a mount is ever removed.
    """
    begun = time.monotonic()
    clean_looks = 0
    elsewhere: list[str] = []
    while clean_looks < _CLEAN_LOOKS:
        # Taken before the attempt: a busy disk can hold one umount for longer than our patience, and what it
        # released in the end has not resisted.
        passed_seconds = time.monotonic() - begun
        remaining = _release(path)
        if passed_seconds > _ELSEWHERE_SECONDS and all(map(held_elsewhere, remaining)):
            elsewhere, remaining = remaining, []
        clean_looks = 0 if remaining else clean_looks + 1
        if passed_seconds > patience_seconds and remaining:
            raise WorkspaceNotCleared(f"{path}: could not release {', '.join(remaining)}")
        time.sleep(0.02)
    if keep_files:
        (path / MARKER).unlink(missing_ok=True)
    else:
        shutil.rmtree(path)
    return elsewhere


def clear_abandoned(root: Path) -> list[Path]:
    """Clear the workspaces below `root` that are ours and whose owner and janitor are both gone."""
    cleared = []
    for path in root.glob(f"{_PREFIX}*"):
        marker = path / MARKER
        try:
            # Root may be world-writable: only a real directory of our own user is trusted to be a workspace.
            if path.is_symlink() or path.stat().st_uid != os.getuid() or not marker.is_file():
                continue
            with marker.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                clear(path)
                cleared.append(path)
        except (BlockingIOError, FileNotFoundError, PermissionError):
            continue  # in use, cleared by someone else meanwhile, or not ours
    return cleared


def members(path: Path) -> list[psutil.Process]:
    """The processes that carry the mark of the workspace at `path`, this one excepted."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(ENVIRONMENT_MARK) == str(path):
                found.append(process)
        except psutil.Error:
            continue  # ended meanwhile, a kernel thread, or another user's
    return found


def mounts_below(path: Path) -> list[Path]:
    """Mount points below `path`, innermost first."""
    mounted = [Path(partition.mountpoint) for partition in psutil.disk_partitions(all=True)]
    return sorted((point for point in mounted if point.is_relative_to(path)), reverse=True)


def loop_devices_below(path: Path) -> list[str]:
    """Loop devices whose image lies below `path`, e.g. `/dev/loop3`."""
    devices = []
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            image = backing.read_text().rstrip("\n").removesuffix(" (deleted)")
        except OSError:
            continue  # detached meanwhile
        if Path(image).is_relative_to(path):
            devices.append(f"/dev/{backing.parts[3]}")
    return devices


def held_elsewhere(thing: str) -> bool:
    """Whether the remainder is a loop device, e.g. `/dev/loop3`, which goes when its last user does.

    Where no mount is left in this namespace, the last user is in another one.
    """
    flag = Path("/sys/block") / Path(thing).name / "loop" / "autoclear"
    try:
        return thing.startswith("/dev/loop") and flag.read_text().strip() == "1"
    except OSError:
        return False  # detached meanwhile, or no loop device at all


def _release(path: Path) -> list[str]:
    """One attempt at ending everything that holds the workspace; returns the remains before it."""
    processes = members(path)
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    _await_end(processes)
    mounts = mounts_below(path)
    for mount in mounts:
        subprocess.run(["umount", str(mount)], check=False, capture_output=True)
    loops = loop_devices_below(path)
    for device in loops:  # those of our mounts detach by themselves
        subprocess.run(["losetup", "--detach", device], check=False, capture_output=True)
    return [*(f"process {process.pid}" for process in processes), *map(str, mounts), *loops]


def _await_end(processes: list[psutil.Process]) -> None:
    """Wait a second at most until they are gone or zombies; reaping a child is up to who started it."""
    deadline = time.monotonic() + 1.0
    for process in processes:
        while _runs(process) and time.monotonic() < deadline:
            time.sleep(0.005)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _start_janitor(path: Path) -> subprocess.Popen[bytes]:
    # A session of its own: a Ctrl-C at the terminal must not end the one who tidies up after it.
    return subprocess.Popen(
        [sys.executable, "-m", "testbed.loopback.janitor", str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
