"""Clears a workspace when its owner is gone: `python -m testbed.loopback.janitor WORKSPACE`.

The owner holds the other end of stdin and the lock of the marker. Both end with the owner, in whatever way it
ends.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from pathlib import Path

from testbed.loopback.workspace import ENVIRONMENT_MARK, MARKER, clear


def main(path: Path) -> int:
    """Wait for the end of the owner, then clear what it left at `path`."""
    # An orderly stop of everything (a terminal closed, a shutdown) must not take the janitor before its work
    # is done.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    try:
        with (path / MARKER).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (path / MARKER).exists():  # else a next owner was quicker
                clear(path)
    except FileNotFoundError:
        pass  # the owner did it, or keeps the files
    return 0


if __name__ == "__main__":
    os.environ.pop(ENVIRONMENT_MARK, None)
    sys.exit(main(Path(sys.argv[1])))
