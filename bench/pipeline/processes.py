"""The cost of a process and of all that it starts: processor time, wall time, memory."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_LOOK_SECONDS = 0.25
_TAIL = 4000


@dataclass
class Peak:
    """The memory and the time of processes so far. Memory that several share counts for each of them."""

    tree_bytes: int = 0
    """The most that all held together."""
    process_bytes: int = 0
    """The most that one of Spark's Python workers held: a task."""
    seconds: dict[int, float] = field(default_factory=dict)
    """The CPU seconds of each process, ended ones included."""

    @property
    def cpu_seconds(self) -> float:
        """The CPU seconds of all."""
        return sum(self.seconds.values())


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended: its standard output, and its cost with that of all that it started."""

    said: str
    cpu_seconds: float
    wall_seconds: float
    peak: Peak


@contextmanager
def peak_memory(pids: Sequence[int] = (), interval_seconds: float = _LOOK_SECONDS) -> Iterator[Peak]:
    """Watch these processes, or this one, and all that they start, while the block runs."""
    peak, ended = Peak(), threading.Event()
    roots = [psutil.Process(pid) for pid in pids or (os.getpid(),)]

    def watch() -> None:
        while not ended.wait(interval_seconds):
            _look(roots, peak)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def measured(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None, also: Sequence[int] = ()
) -> Ran:
    """Run a command to its end, with its standard error in the log; `also` are processes that work for it, as
    those of Spark's cluster do.

    CPU time after the last look at a process, at most a quarter of a second, is not counted.

    Raises:
        RuntimeError: it failed; the text has the end of its output.
    """
    before = Peak()
    _look([psutil.Process(pid) for pid in also], before)
    begun = time.monotonic()
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment) as process,
        peak_memory([process.pid, *also]) as peak,
    ):
        said = process.communicate()[0].decode("utf-8", "replace")
    wall = time.monotonic() - begun
    if process.returncode:
        errors_text = log.read_text("utf-8", "replace")
        raise RuntimeError(f"{command[:4]} failed:\n{said[-_TAIL:]}{errors_text[-_TAIL:]}")
    return Ran(said, peak.cpu_seconds - before.cpu_seconds, wall, peak)


def _look(roots: Sequence[psutil.Process], peak: Peak) -> None:
    """Note what the processes and their children hold and have used."""
    held = 0
    for root in roots:
        with suppress(psutil.NoSuchProcess):
            for one in (root, *root.children(recursive=True)):
                with suppress(psutil.NoSuchProcess), one.oneshot():
                    times, size = one.cpu_times(), one.memory_info().rss
                    peak.seconds[one.pid] = times.user + times.system
                    held += size
                    if "python" in one.name() and size > peak.process_bytes and _is_task(one):
                        peak.process_bytes = size
    peak.tree_bytes = max(peak.tree_bytes, held)


def _is_task(process: psutil.Process) -> bool:
    """Whether it is a worker of Spark's: forked by its daemon."""
    return "pyspark.daemon" in process.cmdline()
