"""Inputs and outputs of a cycle: news of the cluster, and the edges through which it reaches the world."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from kquota.applied.state import AppliedState, AppliedUnknown
from kquota.applied.verification import Verification
from kquota.core.usage import UsageRecord, Volume
from kquota.daemon.clocks import Moment
from kquota.daemon.orders import Headers
from kquota.observe.observation import Observation


@dataclass(frozen=True, slots=True)
class Arrival:
    """A record of the usage topic, as it arrived; the time is that of the broker that appended it."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterNews:
    """The present knowledge of the Kafka side, in addition to the records.

    ``topic_refused`` is the reason why the usage topic can't be used. ``asked_own_broker`` is whether this
    broker itself has lately answered a request of ours. ``reports_lost`` counts reports of ours that were
    not delivered. ``rereadings`` counts how often the same topic began to be read again from its beginning:
    with the records of this cycle, if it has grown.
    """

    cluster_id: str | None = None
    active_brokers: frozenset[int] | None = None
    caught_up: bool = False
    topic_refused: str | None = None
    asked_own_broker: bool = False
    reports_lost: int = 0
    rereadings: int = 0


class Ports(Protocol):
    """The edges of a cycle. None of these calls may block or raise for an expected failure."""

    def observe(self, moment: Moment) -> Observation | None:
        """Return the freshest look at the volumes; None before the first."""

    def recall(self, volumes: Iterable[Volume]) -> None:
        """Take in the volumes of this broker's last record; empty where there is none."""

    def publish(self, record: UsageRecord, applied: Mapping[str, object] | None) -> None:
        """Hand the record to the usage topic."""

    def write(self, document: Mapping[str, object]) -> str | None:
        """Write the decision file; return what went wrong."""

    def applied(
        self, moment: Moment, cluster_id: str | None
    ) -> tuple[AppliedState | AppliedUnknown, Verification]:
        """Read the plug-in's applied-state file."""

    def remember_grant(self, cluster_id: str, moment: Moment) -> None:
        """Persist that this broker was verified to exempt us."""
