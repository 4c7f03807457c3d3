"""The reserve and the zone of docs/sizing.md, term by term. Pure.

    reserve ≥ r · (τ + W/2) + a · B · C · s + a · B · leak(t) + other writers
    leak(t) = max(F, C · s) · (15 + max(2, rounds) · t/D), rounds = (1 + √(1 + 4 · D/W)) / 2
    zone    ≥ e · r · (τ + W/2 + 1)

A broker with the fence leaks nothing, so that B · leak(t) is a sum over those without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizing:
    """The figures of docs/sizing.md that the history does not have.

    `reaction_seconds` is τ, `window_seconds` W, the brokers' quota window, and `request_bytes` s, the largest
    produce request. `replication_factor` is the mean one of the topics. `connections` is C, the producing
    connections of each broker; None counts the clients in its records, which may have several each.

    The others say what a PAUSE without the fence lets through: `pause_seconds` is t, its length,
    `mute_seconds` D, the longest mute, and `arrival_bytes` F. Without `trusts_fence` no broker has it.
    """

    reaction_seconds: float = 2.0
    window_seconds: float = 11.0
    request_bytes: int = 1024 * 1024
    replication_factor: float = 3.0
    connections: int | None = None
    pause_seconds: float = 3600.0
    mute_seconds: float = 10.0
    arrival_bytes: int = 1024 * 1024
    trusts_fence: bool = True

    @property
    def delay_seconds(self) -> float:
        """How long a volume fills at full speed after it has crossed a limit."""
        return self.reaction_seconds + self.window_seconds / 2

    def leak_bytes(self, connections: float) -> float:
        """Return what a broker without the fence lets through in a pause."""
        at_once = max(self.arrival_bytes, connections * self.request_bytes)
        rounds = max(2.0, (1 + math.sqrt(1 + 4 * self.mute_seconds / self.window_seconds)) / 2)
        return at_once * (15 + rounds * self.pause_seconds / self.mute_seconds)


@dataclass(frozen=True, slots=True)
class Producing:
    """The brokers of a cluster with the connections of producers to each, and those without the fence."""

    connections: Mapping[int, float]
    without_fence: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Reserve:
    """The terms of the reserve of a volume, and its zone, in bytes. `share` is a."""

    share: float
    full_speed_bytes: float
    in_flight_bytes: float
    leak_bytes: float
    others_bytes: float
    zone_bytes: float

    @property
    def bytes(self) -> float:
        """The whole reserve."""
        return self.full_speed_bytes + self.in_flight_bytes + self.leak_bytes + self.others_bytes

    def sentence(self) -> str:
        """Return its terms in words."""
        terms = {
            "at full speed until producers are held": self.full_speed_bytes,
            "of requests in flight": self.in_flight_bytes,
            "that a PAUSE lets through": self.leak_bytes,
            "by other writers": self.others_bytes,
        }
        words = " + ".join(f"{_gigabytes(term)} {name}" for name, term in terms.items())
        return f"a reserve of {_gigabytes(self.bytes)} = {words}; a zone of {_gigabytes(self.zone_bytes)}"


def reserve_of(
    fill_bytes_per_second: float, share: float, others_bytes: float, producing: Producing, sizing: Sizing
) -> Reserve:
    """Return the reserve and the zone of a volume.

    Args:
        fill_bytes_per_second: r, the rate at which the volume fills.
        share: a, the part of the producers' bytes that lands on it, once for each replica.
        others_bytes: room for replicas that catch up, moves, compaction and other programs.
        producing: the brokers of its cluster.
        sizing: what the history does not have.
    """
    leaking = producing.without_fence if sizing.trusts_fence else frozenset(producing.connections)
    leak_bytes = sum(
        sizing.leak_bytes(count) for broker, count in producing.connections.items() if broker in leaking
    )
    return Reserve(
        share=share,
        full_speed_bytes=fill_bytes_per_second * sizing.delay_seconds,
        in_flight_bytes=share * sum(producing.connections.values()) * sizing.request_bytes,
        leak_bytes=share * leak_bytes,
        others_bytes=others_bytes,
        zone_bytes=math.e * fill_bytes_per_second * (sizing.delay_seconds + 1),
    )


def _gigabytes(size_bytes: float) -> str:
    return f"{size_bytes / 1e9:.2f} GB"
