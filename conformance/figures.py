"""The result of a trial, and the columns of the table. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

MIB = 2**20


class Fill(StrEnum):
    """The way on which a volume of broker 3 fills."""

    REPLICATION = "by replication"
    """Broker 3 leads nothing; it has two volumes, and the one that fills takes replicas of other leaders."""
    LEADER = "on the leader"
    """Broker 3 leads all partitions of the topics that fill its only volume."""

    @property
    def explanation(self) -> str:
        """Where replicas are, for people."""
        if self is Fill.REPLICATION:
            return (
                "Broker 3 leads nothing: all producers are connected to brokers whose own disks are fine. "
                "It has two volumes, and the small one fills with replicas."
            )
        return "Broker 3 leads all partitions of the topics that fill its only volume."


class Crossed(StrEnum):
    """The cause of the volume's crossing of its hard limit."""

    PRODUCERS = "producers"
    SUITE = "the suite's file"
    """Producers had been slowed, and did not reach the limit in time."""


class Recovery(StrEnum):
    """The work of people after space was made, until producers wrote and all replicas were in sync."""

    ITSELF = "nothing"
    RESTART_LOST = "a restart of each broker that was down or had lost a log dir"
    RESTART_ALL = "a restart of all brokers"
    NEVER = "more than a restart of all brokers"


@dataclass(frozen=True, slots=True)
class Survival:
    """One system in one fill. A time of None is longer than its bound, a share of None is not known."""

    system: str
    fill: Fill
    crossed_by: Crossed
    brokers_lost: tuple[int, ...]
    log_dirs_lost: int
    acknowledged: int
    """Records of all producers."""
    lost: int | None
    """Acknowledged and not in the log; None: the log could not be read to its end."""
    doubled: int | None
    other_breaches: Mapping[str, int]
    """Of Kafka's promise to idempotent producers, by the names of the ledger."""
    given_up: int
    """Records for which a client reported an error to its application."""
    held_seconds: float | None
    hold_bound_seconds: float
    overshoot_bytes: int
    hard_left_bytes: int
    """The volume has no more room beyond its limit than this."""
    resumed_seconds: float | None
    whole_seconds: float | None
    """From the moment of space until all brokers ran and all replicas were in sync, without a restart."""
    recovery_bound_seconds: float
    recovery: Recovery
    collateral_share: float | None
    """The rate of producers to topics without a replica on the volume, as a share of their rate before."""
    consumer_share: float | None
    rate_before: float
    """Of the producers that fill, in bytes per second."""
    offered_rate: float


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of a row: how it is shown, and how two rows compare."""

    name: str
    meaning: str
    shown: Callable[[Survival], str]
    badness: Callable[[Survival], float]
    """Smaller is better."""
    step: float = 0.0
    """A smaller difference is that of the machine, and makes no row better."""


def _lost(row: Survival) -> bool:
    """Whether a broker or a log dir was lost: producers that then wait are stalled, and not held."""
    return bool(row.brokers_lost or row.log_dirs_lost)


def _seconds(value: float | None, bound: float) -> str:
    return f"> {bound:.0f} s" if value is None else f"{value:.1f} s"


def _share(value: float | None) -> str:
    return "not known" if value is None else f"{100 * value:.0f} %"


def _count(value: int | None) -> str:
    return "unreadable" if value is None else f"{value:,}"


def _or_infinite(value: float | None) -> float:
    return math.inf if value is None else value


def _not_share(value: float | None) -> float:
    """A share above 1 is that of producers that catch up, and no better than 1."""
    return 1.0 if value is None else max(0.0, 1 - value)


COLUMNS = (
    Column(
        "brokers lost",
        "brokers whose process ended by itself",
        lambda row: str(len(row.brokers_lost)),
        lambda row: len(row.brokers_lost),
    ),
    Column(
        "log dirs lost",
        "log dirs that their broker has given up, or whose broker has ended",
        lambda row: str(row.log_dirs_lost),
        lambda row: row.log_dirs_lost,
    ),
    Column(
        "records lost",
        "acknowledged records that no consumer finds at the end",
        lambda row: _count(row.lost),
        lambda row: _or_infinite(row.lost),
    ),
    Column(
        "doubled",
        "copies of a record beyond the first",
        lambda row: _count(row.doubled),
        lambda row: _or_infinite(row.doubled),
    ),
    Column(
        "given up",
        "records for which a client reported an error to its application",
        lambda row: _count(row.given_up),
        lambda row: row.given_up,
    ),
    Column(
        "time to hold",
        "from the crossing of the hard limit until at most 2 % of their rate before lands from the producers "
        "that fill the volume; `lost first` if a broker or log dir was lost before that",
        lambda row: "lost first" if _lost(row) else _seconds(row.held_seconds, row.hold_bound_seconds),
        lambda row: math.inf if _lost(row) else _or_infinite(row.held_seconds),
        0.3,
    ),
    Column(
        "overshoot",
        "bytes that the volume took in beyond the hard limit; the suite's own file is left out",
        lambda row: f"{row.overshoot_bytes / MIB:.1f} MiB",
        lambda row: row.overshoot_bytes,
        MIB / 2,
    ),
    Column(
        "time to resume",
        "from the moment of space until the slowest of these producers has half its rate again",
        lambda row: _seconds(row.resumed_seconds, row.recovery_bound_seconds),
        lambda row: _or_infinite(row.resumed_seconds),
        0.5,
    ),
    Column(
        "whole again",
        "from the moment of space until all brokers run and all replicas are in sync, without a restart",
        lambda row: _seconds(row.whole_seconds, row.recovery_bound_seconds),
        lambda row: _or_infinite(row.whole_seconds),
        1.5,
    ),
    Column(
        "needed from people",
        "after space was made, until producers wrote and all replicas were in sync",
        lambda row: row.recovery.value,
        lambda row: list(Recovery).index(row.recovery),
    ),
    Column(
        "others keep",
        "during the hold, the rate of producers to topics without a replica on broker 3, as a share of their "
        "rate before",
        lambda row: _share(row.collateral_share),
        lambda row: _not_share(row.collateral_share),
        0.05,
    ),
    Column(
        "consumer keeps",
        "the same of a consumer of the topics that fill the volume",
        lambda row: _share(row.consumer_share),
        lambda row: _not_share(row.consumer_share),
        0.05,
    ),
)


def behind(rows: Sequence[Survival], system: str) -> list[tuple[Fill, Column]]:
    """Return where another system has a better figure than this one, by fill and column."""
    found = []
    for fill in Fill:
        of_fill = [row for row in rows if row.fill is fill]
        own = [row for row in of_fill if row.system == system]
        for column in COLUMNS:
            best = min((column.badness(row) for row in of_fill), default=0.0)
            found += [(fill, column) for row in own if column.badness(row) > best + column.step]
    return found
