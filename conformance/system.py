"""A system under trial: how to start it. All else is seen by clients and on disks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from testbed.loopback.runtime import KafkaRuntime

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """Free bytes of a volume, for an ordinary user."""

    soft_left_bytes: int
    """From here on a system may slow producers."""
    hard_left_bytes: int
    """From here on producers should add nothing."""


class Broker(Protocol):
    """One broker: its volumes, and its switch."""

    @property
    def volumes(self) -> tuple[Path, ...]:
        """The mount points of its log dirs, one log dir on each."""

    def running(self) -> bool:
        """Whether its process runs."""

    def start(self) -> None:
        """Start it; returns at once."""

    def stop(self) -> None:
        """End it, within a minute."""


class Place(Protocol):
    """A running cluster with the system in it."""

    @property
    def path(self) -> Path:
        """A directory for books and logs, which goes with the cluster."""

    @property
    def bootstrap_servers(self) -> str:
        """The listener for applications."""

    @property
    def brokers(self) -> Mapping[int, Broker]:
        """By broker id."""

    def environment(self) -> dict[str, str]:
        """The environment of processes that end with the cluster."""


class System(ABC):
    """A way to protect Kafka from a full disk, or none."""

    name: ClassVar[str]
    description: ClassVar[str]
    """One sentence: what runs, with which settings."""
    remarks: ClassVar[Mapping[str, str]] = {}
    """Sentences of its authors, for where another system does better, by the name of the column."""

    def __init__(self, runtime: KafkaRuntime) -> None:
        self.runtime = runtime

    @abstractmethod
    def versions(self) -> tuple[str, ...]:
        """Return names with versions, besides Kafka's."""

    @abstractmethod
    def running(
        self, volumes: Mapping[int, tuple[int, ...]], limits: Limits, report: Report
    ) -> AbstractContextManager[Place]:
        """Run a cluster with volumes of these sizes in bytes, by broker id; ready when the block begins."""
