"""Where hosts and their images live, and the lock around what all fleets share."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Collection, Iterator
from pathlib import Path

HOSTS = Path("/var/lib/kquota-hosts")
"""A directory per fleet, of root alone."""


def cache() -> Path:
    """Where what takes long to make is kept, outside the source tree (KQUOTA_CACHE overrides)."""
    if configured := os.environ.get("KQUOTA_CACHE"):
        return Path(configured)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kquota"


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold an exclusive lock on that file, which is made where it is missing and never removed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def all_fleets_locked() -> contextlib.AbstractContextManager[None]:
    """While held, no fleet comes or goes."""
    return locked(Path("/run/lock/kquota-hosts.lock"))


def unused_number(
    taken: Collection[int], count: int, *, last_given: Path = Path("/run/lock/kquota-hosts.number")
) -> int:
    """Return a number below ``count`` that is not taken, and was not given out for as long as can be.

    So a search for the remains of a fleet doesn't find the next one. To be called with
    `all_fleets_locked`; ``last_given`` is where the number is remembered.
    """
    try:
        last = int(last_given.read_text())
    except (FileNotFoundError, ValueError):  # never written, or not to its end
        last = count - 1
    number = next(number for i in range(1, count + 1) if (number := (last + i) % count) not in taken)
    last_given.write_text(str(number))
    return number
