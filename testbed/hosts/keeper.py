"""Removes a fleet when its owner is gone: `python -m testbed.hosts.keeper FLEET_DIRECTORY`.

The keeper is a process of its own. While hosts are being made it belongs to their maker, who holds the other
end of its stdin; "keep PID" there gives it to process PID, "keep 0" to no process. It removes the fleet when
the one it belongs to ends, in whatever way, or on SIGTERM. It holds a lock as long as it lives: a fleet whose
lock is free was abandoned by its keeper, too, and goes when the next one is made.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import sys
from pathlib import Path

from testbed.hosts import cgroups, network
from testbed.hosts.places import HOSTS, all_fleets_locked
from testbed.loopback import workspace

KEEPER_LOCK = "keeper.pid"
# A JVM with a large heap takes its time to be gone, on a busy machine above all.
_PATIENCE_SECONDS = 60.0
_LOOK_SECONDS = 0.2


def clear(path: Path) -> None:
    """End the hosts of the fleet at `path`, and remove its mounts, network, control groups and files."""
    try:
        number = int(json.loads((path / "fleet.json").read_text("utf-8"))["number"])
    except (FileNotFoundError, ValueError):
        number = None  # its maker ended before it had one, and nothing was made yet
    if number is not None:
        groups = network.namespaces(number)
        cgroups.kill(groups)
        workspace.clear(path, keep_files=True, patience_seconds=_PATIENCE_SECONDS)
        network.remove(number)
        cgroups.remove(groups)
    shutil.rmtree(path)
    if not any(HOSTS.iterdir()):
        network.remove_guard()


def clear_abandoned() -> None:
    """Remove the fleets whose keeper is gone. To be called with `all_fleets_locked`."""
    for path in HOSTS.glob("*"):
        if not _is_kept(path):
            clear(path)


def _is_kept(path: Path) -> bool:
    with (path / KEEPER_LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        # Closed before anything is cleared: the file lies below a mount that has to be unmounted.
        return False


def _owner_from(line: str) -> int | None:
    """Process id in "keep PID"; None for anything else, such as the end of a maker without a message."""
    words = line.split()
    return int(words[1]) if len(words) == 2 and words[0] == "keep" else None


def _told_to_end() -> bool:
    return signal.sigtimedwait([signal.SIGTERM], _LOOK_SECONDS) is not None


def _wait(owner: int) -> None:
    """Return when process `owner` has ended, or on SIGTERM."""
    handle = None
    if owner:
        try:
            handle = os.pidfd_open(owner)
        except ProcessLookupError:
            return
    while not _told_to_end():
        if handle is not None and select.select([handle], [], [], 0)[0]:
            return


def main(path: Path) -> int:
    """Keep the fleet at `path` until it is to go, then remove it."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    with (path / KEEPER_LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(str(os.getpid()))
        lock.flush()
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], 0)[0]:
            if _told_to_end():
                break
        else:
            owner = _owner_from(sys.stdin.readline())
            if owner is not None:
                _wait(owner)
        with all_fleets_locked():
            clear(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
