"""The processor time of processes."""

from __future__ import annotations

import psutil


def processor_seconds(pid: int | None = None) -> float:
    """Return the CPU time of a process, or this one, and of those that it has started and that still run."""
    process = psutil.Process(pid)
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return float(sum(time.user + time.system for time in times))
