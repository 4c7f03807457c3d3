"""Which streams may begin. Pure, but for counting this machine's cores."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from tools.streams.stream import Stream

_CGROUPS = Path("/sys/fs/cgroup")
_ROUNDING = 0.001


def may_begin(waiting: Sequence[Stream], running: Collection[Stream], cores: float) -> list[Stream]:
    """Return those that find their cores free, in order; one that wants more than there are runs alone."""
    unfinished = {stream.name for stream in (*waiting, *running)}
    used = sum(stream.cores for stream in running)
    begun: list[Stream] = []
    for stream in waiting:
        if unfinished.isdisjoint(stream.after) and (used == 0 or used + stream.cores <= cores + _ROUNDING):
            begun.append(stream)
            used += stream.cores
    return begun


def hopeless(waiting: Sequence[Stream], failed: Collection[str]) -> list[Stream]:
    """Return those that come after one that has failed, or after one of these."""
    lost = set(failed)
    found: list[Stream] = []
    while more := [stream for stream in waiting if stream not in found and not lost.isdisjoint(stream.after)]:
        found += more
        lost |= {stream.name for stream in more}
    return found


def available_cores(cgroups: Path = _CGROUPS) -> float:
    """How many cores this process may keep busy: those it may run on, or fewer where its time is limited."""
    cores = float(len(os.sched_getaffinity(0)))
    with suppress(OSError, ValueError):  # version 2 of control groups: "max 100000", or "150000 100000"
        quota, period = (cgroups / "cpu.max").read_text().split()
        cores = min(cores, int(quota) / int(period))
    with suppress(OSError, ValueError):  # version 1: -1 is no limit
        quota_us = int((cgroups / "cpu/cpu.cfs_quota_us").read_text())
        if quota_us > 0:
            cores = min(cores, quota_us / int((cgroups / "cpu/cpu.cfs_period_us").read_text()))
    return cores
