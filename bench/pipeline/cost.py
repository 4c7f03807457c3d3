"""The cost of works and of commands: values."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

MAINTAIN = "maintain"
"""The command that closes days."""
NOTHING_DUE = "maintain, nothing due"
"""The same, when all days are closed but the last, to which records have come: as in most hours."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one work for one engine: CPU and wall seconds of each repetition, and the answer of all."""

    engine: str
    cores: int
    days: int
    rows: int
    load: float
    """Load average over the last minute before it."""
    work: str
    answer: Mapping[str, float]
    cpu_seconds: tuple[float, ...]
    wall_seconds: tuple[float, ...]
    run: str = ""
    """When the run began that measured it, ISO 8601; empty in results of before."""

    @property
    def cpu(self) -> float:
        """The median of the CPU seconds."""
        return statistics.median(self.cpu_seconds)

    @property
    def wall(self) -> float:
        """The median of the wall seconds."""
        return statistics.median(self.wall_seconds)

    @property
    def speed(self) -> float:
        """Millions of samples per CPU second."""
        return self.rows / self.cpu / 1e6

    def __str__(self) -> str:
        """The work and on how much, for people."""
        return f"{self.work}, {self.rows / 1e6:.0f} M"


@dataclass(frozen=True, slots=True)
class Command:
    """The cost of a whole command and of all processes that it starts; memory is the most that they held
    together. `samples` of `days` are those that it works on.
    """

    work: str
    cores: int
    brokers: int
    volumes: int
    days: int
    samples: int
    load: float
    """Load average over the last minute before it."""
    cpu_seconds: float
    wall_seconds: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class OnCluster:
    """A back-test in closed loop by spark-submit on a standalone cluster: the cost of all processes, the
    cluster's, too. `task_bytes` is the most that one of its tasks held, in Python.
    """

    brokers: int
    volumes: int
    days: int
    tick_seconds: int
    cells: int
    samples: int
    policies: int
    policies_that_held: int
    load: float
    cpu_seconds: float
    wall_seconds: float
    peak_bytes: int
    task_bytes: int
