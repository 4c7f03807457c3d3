"""Passing the leaders of partitions on to the plug-in, where it divides totals or thresholds by them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from kquota.guard.applied_state import AppliedState
from kquota.guard.decision_file import DecisionFile
from kquota.guard.report import CycleReport
from kquota.host.boot_clock import BootClock
from kquota.journal.active_problems import ActiveProblem
from kquota.journal.journal import MessageId
from kquota.kafka.admin import AdminConnection
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.kafka.threads import Watch, going_on
from kquota.quotas.partition_counts import PartitionCounts, leaders_document, partition_counts

FILE_NAME = "leaders.json"
REGULAR_SECONDS = 30.0
# Elections follow each other after a change: until two answers agree.
SOON_SECONDS = 5.0
_LOOK_SECONDS = 1.0

_SUBJECT = "leaders of partitions"
_MAY_NOT_SEE = (
    "the leaders of partitions are not passed on to the plug-in, because the agent's principal may not see"
    " all topics: allow it to describe topic * (kquota_topic_agents_describe of the role kquota_topic)."
    " Until then shares of totals and thresholds follow the broker's own metadata alone."
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A cluster whose leaders the plug-in needs, and the active brokers, whose change moves leaders."""

    cluster_id: str
    active_brokers: frozenset[int] | None


class LeadersSchedule:
    """When to ask for the leaders: each half minute, and sooner after a change."""

    def __init__(self) -> None:
        self._asked_for: Wanted | None = None
        self._due_seconds = 0.0
        self._last: object = None

    def is_due(self, wanted: Wanted, now_seconds: float) -> bool:
        """Return whether to ask now."""
        return wanted != self._asked_for or now_seconds >= self._due_seconds

    def asked(self, wanted: Wanted, outcome: object, now_seconds: float) -> None:
        """Note the outcome: counts, or a kind of failure."""
        changed = outcome != self._last or wanted != self._asked_for
        self._due_seconds = now_seconds + (SOON_SECONDS if changed else REGULAR_SECONDS)
        self._asked_for, self._last = wanted, outcome


class LeaderWatch(Watch):
    """Asks in a thread of its own, which begins when the plug-in first needs the leaders."""

    def __init__(
        self, admin: AdminConnection, decision_file: Path, broker_id: int, boot_clock: BootClock
    ) -> None:
        """Write next to the decision file.

        Raises:
            OSError: the leftovers of an earlier writer can't be removed.
        """
        self._admin = admin
        self._file = DecisionFile(decision_file.with_name(FILE_NAME), "list of leaders")
        self._broker_id = broker_id
        self._boot_clock = boot_clock
        self._schedule = LeadersSchedule()
        self._wanted: Wanted | None = None
        self._trouble: ActiveProblem | None = None
        super().__init__("kquota-leaders")

    def follow(self, report: CycleReport) -> Iterator[ActiveProblem]:
        """Ask from now on if the plug-in needs the leaders; yield the reason why it does not get them."""
        applied, cluster_id = report.applied, report.news.own_cluster_id
        if isinstance(applied, AppliedState) and applied.leaders is not None and cluster_id is not None:
            is_first = self._wanted is None and self._thread.ident is None
            self._wanted = Wanted(cluster_id, report.news.active_brokers)
            if is_first:
                self.start()
            if self._trouble is not None:
                yield self._trouble
        else:
            self._wanted = None

    def _run(self) -> None:
        while not self._stop.is_set():
            with going_on("passing on the leaders of partitions"):
                wanted = self._wanted
                if wanted is not None and self._schedule.is_due(wanted, time.monotonic()):
                    self._pass_on(wanted)
            self._stop.wait(_LOOK_SECONDS)

    def _pass_on(self, wanted: Wanted) -> None:
        before = self._boot_clock.now()
        found = self._ask()
        if isinstance(found, KafkaFailure):
            is_denied = found.kind is Kind.ACL_DENIED
            sentence = _MAY_NOT_SEE if is_denied else found.sentence
            self._trouble = ActiveProblem(MessageId.KAFKA_TROUBLE, _SUBJECT, found.kind, sentence)
            self._schedule.asked(wanted, found.kind, time.monotonic())
            return
        self._schedule.asked(wanted, found, time.monotonic())
        document = leaders_document(
            found,
            cluster_id=wanted.cluster_id,
            broker_id=self._broker_id,
            boot_id=before.boot_id,
            seen_uptime_ms=before.uptime_ms,
        )
        try:
            self._file.write(document)
        except (OSError, ValueError) as error:
            sentence = f"the leaders of partitions can't be passed on to the plug-in: {error}"
            self._trouble = ActiveProblem(MessageId.KAFKA_TROUBLE, _SUBJECT, "file", sentence)
        else:
            self._trouble = None

    def _ask(self) -> PartitionCounts | KafkaFailure:
        """Ask the cluster; denied if the answer would lack topics, which brokers leave out without a word.

        A topic that can't exist is missing for a principal that may see all, and denied to others.
        """
        probe = self._admin.describe_topic(uuid4().hex).result()
        if isinstance(probe, KafkaFailure) and probe.kind is not Kind.TOPIC_MISSING:
            return probe
        found = self._admin.leaders().result()
        return found if isinstance(found, KafkaFailure) else partition_counts(found, self._broker_id)
