"""What is measured beside a large cluster, and what became of a simulated fleet, as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AgentCost:
    """Figures of the agent and its probe process together; bytes as TCP counted them, TLS included."""

    brokers: int
    volumes: int
    partitions: int
    interval_seconds: float
    record_bytes: int
    start_seconds: float
    cores: float
    memory_bytes: int
    received_bytes_per_second: float
    sent_bytes_per_second: float
    pause_median_seconds: float
    """From a breach handed to Kafka to a decision file that says PAUSE."""
    pause_longest_seconds: float

    def __str__(self) -> str:
        """The cluster, for people."""
        return f"{self.brokers} brokers, every {self.interval_seconds:g} s"

    @property
    def by_all_leaders(self) -> float:
        """Bytes per second that the topic's leaders send to all agents of such a cluster."""
        return self.brokers * self.received_bytes_per_second


@dataclass(frozen=True, slots=True)
class ClientCost:
    """Of a process with the agent's clients, and nothing to do; ``cores`` is its share of one."""

    brokers: int
    threads: int
    descriptors: int
    memory_bytes: int
    cores: float


@dataclass(frozen=True, slots=True)
class CoreCost:
    """Seconds of one processor core; the least of some repeats, because noise only adds."""

    brokers: int
    volumes: int
    fold_record_seconds: float
    first_decision_seconds: float
    next_decision_seconds: float
    decision_after_reports_seconds: float

    def __str__(self) -> str:
        """The cluster, for people."""
        return f"{self.brokers} x {self.volumes} volumes"


@dataclass(frozen=True, slots=True)
class Fleet:
    """What became of a simulated fleet; without protection nobody is held."""

    scenario: str
    story: str
    protected: bool
    smallest_free_ratio: float
    full_after_days: float | None
    most_transitions_a_day: int
    throttle_days: float
    pause_days: float
    smallest_factor: float


KINDS = (AgentCost, ClientCost, CoreCost, Fleet)
