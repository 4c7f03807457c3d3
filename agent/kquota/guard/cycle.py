"""One cycle of the agent: observe → publish → fold → decide → write.

The plug-in applies the file that a cycle writes, and the next cycle observes what was applied.
This is the whole agent between its edges: it owns the state that lasts from cycle to cycle (view,
membership, latches, schedules), and reaches Kafka, the volumes and the files only through its local side.
It never sleeps and never waits.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from kquota.disks.band import own_log_dirs
from kquota.disks.fill_rates import FillRates
from kquota.disks.observation import Observation
from kquota.formats.record_verifier import RecordVerifier
from kquota.formats.records import TopicKind, broker_key
from kquota.formats.sentences import foreign_sentence, malformed_sentence, wrong_topic_sentence
from kquota.formats.signature_headers import SigningMode
from kquota.guard.applied_state import AppliedState, AppliedUnknown
from kquota.guard.applied_verification import Verification
from kquota.guard.broker_host import BrokerHost
from kquota.guard.cycle_sentence import cycle_sentence
from kquota.guard.enforcement import Enforcement, Grant
from kquota.guard.folded import Folded
from kquota.guard.inputs import ClusterNews, Moment
from kquota.guard.lease import lease_of
from kquota.guard.listed import ListedMemory
from kquota.guard.orders import order_news
from kquota.guard.own_record import own_record
from kquota.guard.publication import DuplicateAgentDetector, PublicationSchedule, regular_interval_seconds
from kquota.guard.report import CycleReport
from kquota.guard.topic_state import FoldedRecord, TopicState
from kquota.kafka.topic_records import TopicEvent
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import Decision, UndeterminedCause, decision_document
from kquota.policy.events import (
    BrokerOrder,
    DecommissionEvent,
    MalformedEvent,
    RefusedEvent,
    TombstoneEvent,
    UsageEvent,
)
from kquota.policy.known_brokers import ListedBrokers
from kquota.policy.membership import Membership
from kquota.policy.standing_orders import orders_in_force
from kquota.policy.usage import UsageRecord
from kquota.policy.view import FoldResult
from kquota.policy.volume import Volume
from kquota.settings.model import Settings

# An agent that has just started waits this long for the topic before it decides without it: an
# earlier instance's lease, if there was one, covers the gap, and a restart is no reason to flap.
START_PATIENCE_SECONDS = 20.0
# Where there is no such lease and Kafka does not answer at all, as at a cold boot of the host, there is no
# gap to cover, and the broker on this host waits for our first decision before it starts itself.
LONELY_PATIENCE_SECONDS = 3.0
# The decision is written again at least this often, though nothing changed: the lease runs on.
REWRITE_SECONDS = 5.0
APPLIED_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Observed:
    """The input of a cycle from this host: volumes, our record of them, and the state that is applied."""

    volumes: Observation
    own: UsageRecord | None
    applied: AppliedState | AppliedUnknown
    verification: Verification


class Cycle:
    """The agent's memory, and the steps in their order.

    ``decides`` is whether the first decision has been made. The view of a cycle is made when it has folded.
    """

    def __init__(
        self,
        settings: Settings,
        broker_id: int,
        local: BrokerHost,
        started: Moment,
        *,
        granted_for: str | None = None,
        covered_until_uptime_ms: int = 0,
        verifier: RecordVerifier | None = None,
        orders_verifier: RecordVerifier | None = None,
        listed: ListedBrokers | None = None,
    ) -> None:
        """Begin with an empty view; ``granted_for`` is the cluster id that enforcing was granted for.

        ``covered_until_uptime_ms`` is the end of an earlier instance's lease of this boot, 0 for none;
        ``listed`` are the brokers that earlier instances have seen in the cluster's list.
        """
        self.instance_id = str(uuid.uuid4())
        tolerance = timedelta(seconds=settings.future_tolerance_seconds)
        self._orders = TopicState(TopicKind.ORDERS, tolerance, orders_verifier)
        self._usage = TopicState(TopicKind.USAGE, tolerance, verifier)
        self._view = self._usage.replay.view
        self._membership = Membership(timedelta(seconds=settings.join_grace_seconds), tolerance)
        self._listed = ListedMemory(listed, started)
        self._schedule = PublicationSchedule(settings.interval_seconds)
        self._settings, self._broker_id = settings, broker_id
        self._local, self._started = local, started
        self._grant = Grant(granted_for)
        self._covered_until_uptime_ms = covered_until_uptime_ms
        self._previous: tuple[Volume, ...] = ()
        self._fill_rates = FillRates()
        self._usage_sequence = self._decision_sequence = 0
        self._recalled = self._withheld = self.decides = False
        self._written: tuple[object, ...] | None = None
        self._written_at_seconds = 0.0
        self._applied: tuple[AppliedState | AppliedUnknown, Verification] | None = None
        self._applied_at_seconds = 0.0
        self._rival = DuplicateAgentDetector(started)
        self._joining: frozenset[int] = frozenset()

    def configure(
        self,
        settings: Settings,
        local: BrokerHost,
        verifier: RecordVerifier | None = None,
        orders_verifier: RecordVerifier | None = None,
    ) -> None:
        """Continue with other settings; the knowledge about the cluster stays.

        Where signatures are now required, unsigned records count only until the topic was read again.
        """
        required, was = settings.signing.mode is SigningMode.REQUIRED, self._settings.signing.mode
        self._settings, self._local = settings, local
        self._recalled = False
        self._applied = None  # another local side has heard nothing yet
        tolerance = timedelta(seconds=settings.future_tolerance_seconds)
        self._membership.tolerance = tolerance
        for topic, judge in ((self._usage, verifier), (self._orders, orders_verifier)):
            topic.configure(tolerance, judge, forget=required and was is not SigningMode.REQUIRED)
        self._schedule.force()
        self._membership.grace = timedelta(seconds=settings.join_grace_seconds)
        self._schedule.interval_seconds = settings.interval_seconds
        self._applied = None

    def take_revocations(self) -> list[TopicKind]:
        """Let revoked certificates count no more; return the topics that have to be read again for it."""
        return [topic.kind for topic in (self._usage, self._orders) if topic.replay.take_revocations()]

    def take(self, events: Iterable[TopicEvent]) -> None:
        """Keep what the readers of our topics have handed over until it is folded, whatever fails before."""
        for event in events:
            (self._orders if event.topic is TopicKind.ORDERS else self._usage).take(event)

    @property
    def publishes_next(self) -> bool:
        """Whether something just read calls for a publication at once, and nothing is in its way."""
        return self._schedule.forced and self._usage.was_read and not self._withheld

    def run(self, moment: Moment, news: ClusterNews) -> CycleReport:
        """Run the steps once."""
        observed = self._observe(moment, news)
        self._publish(observed, moment, news)
        fold = self._fold(moment, news)
        decision = self._decide(observed.own, moment, news)
        enforced = self._enforce(observed.verification, moment, news)
        written, write_error = self._write(decision, enforced, observed.own, moment, news)
        return CycleReport(
            moment=moment,
            sentence=cycle_sentence(decision, observed.applied, enforced, news),
            decision=decision,
            enforcement=enforced,
            own=observed.own,
            observation=observed.volumes,
            applied=observed.applied,
            news=news,
            verified=observed.verification.verified,
            fold=fold,
            orders=orders_in_force(self._view, moment.wall),
            sequence=self._decision_sequence,
            written=written,
            write_error=write_error,
        )

    def _observe(self, moment: Moment, news: ClusterNews) -> _Observed:
        """Look at the volumes, with the latches that we keep, and at what the plug-in applies."""
        if self._usage.caught_up and not self._recalled:
            self._recalled = True
            self._recall(moment)
        now = moment.monotonic_seconds
        if self._applied is None or now - self._applied_at_seconds >= APPLIED_SECONDS:
            self._applied, self._applied_at_seconds = self._local.applied(moment, news.cluster_id), now
        is_active = self._broker_id in (news.active_brokers or ())
        observation = self._local.observe(is_active=is_active)
        if not observation.volumes:
            return _Observed(observation, None, *self._applied)
        own = own_record(
            observation.volumes,
            self._settings.limits,
            self._previous,
            release_margin=self._settings.release_margin_ratio,
            snapshot_at=moment.wall,
            cluster_id=news.cluster_id,
            instance_id=self.instance_id,
            fills=self._fill_rates.observe(observation.volumes),
            fill_floor_bytes_per_second=self._settings.fill_floor_bytes_per_second,
        )
        self._previous = own.volumes
        return _Observed(observation, own, *self._applied)

    def _recall(self, moment: Moment) -> None:
        """Take back from our last record on the topic the latches and what else was known then."""
        reports = self._view.reports_of(self._broker_id)
        if not reports:
            self._local.recall(())
            return
        # The newest may be from the future: that our clock was ahead then is no reason to forget a breach.
        self._previous = (*self._previous, *(v for one in reports for v in one.volumes if v.latched))
        record = reports[-1]
        self._local.recall(record.volumes)
        self._fill_rates.recall(record.volumes)
        self._membership.recall(record.joined, moment.wall)
        if record.instance_id != self.instance_id:
            self._rival.precede(record, moment.monotonic_seconds)

    def _publish(self, observed: _Observed, moment: Moment, news: ClusterNews) -> None:
        own, applied = observed.own, observed.applied
        self._withheld = own is None or news.topic_refused is not None
        # Not before the topic was read: our own last record has the volumes we had, and their latches.
        if own is None or self._withheld or not self._usage.was_read:
            return
        known = applied if isinstance(applied, AppliedState) else None
        state = None if known is None else known.state
        self._schedule.note_lost(news.reports_lost, self._settings.interval_seconds)
        listed = self._listed.brokers.to_report(self._membership.active, self._view, moment.wall)
        own = replace(own, joined=self._membership.sightings, replaces=self._rival.replaced, listed=listed)
        if self._schedule.due(own, state, moment.monotonic_seconds):
            self._usage_sequence += 1
            own = replace(own, sequence=self._usage_sequence)
            plug_in = None if known is None else known.to_usage_document()
            self._local.publish(own, plug_in, is_news=self._schedule.is_news(own, state))
            self._schedule.published(own, state, moment.monotonic_seconds)

    def _fold(self, moment: Moment, news: ClusterNews) -> Folded:
        fold = Folded()
        if self._usage.restarts:
            self._schedule.force()  # our own last record may be gone
        listed = self._listed.brokers.ids.union(self._membership.active or ())
        self._usage.replay.know(news.own_cluster_id, listed)
        for topic in (self._orders, self._usage):
            for one in topic.fold(moment.wall, fold):
                match one.event:
                    case DecommissionEvent(self._broker_id):
                        self._schedule.force()  # we are alive, whatever was ordered
                    case UsageEvent(broker_id, usage) if one.result is FoldResult.USAGE:
                        fold.heard[broker_id] = usage.instance_id, usage.snapshot_at
                if one.is_news:
                    self._take_news(one, fold)
        self._view = self._usage.replay.view_with(self._orders.replay)
        self._take_brokers(news, moment)
        fold.rival = self._rival.look(fold.rival, moment, self._schedule.interval_seconds)
        return fold

    def _take_news(self, one: FoldedRecord, fold: Folded) -> None:
        record, event, result, _ = one
        if result is FoldResult.WRONG_TOPIC:
            fold.malformed.append(wrong_topic_sentence(record.key))
        elif (order := order_news(event, record.headers, record.appended_ms)) is not None:
            fold.orders.append(order)
        match event:
            case TombstoneEvent(broker_id) if broker_id == self._broker_id:
                self._schedule.force()  # we are alive, whatever the record claims
            case UsageEvent(_, usage) if result is FoldResult.MALFORMED:
                fold.malformed.append(foreign_sentence(record.key, usage.cluster_id))
            case UsageEvent(self._broker_id, usage) if result is FoldResult.USAGE:
                if usage.instance_id != self.instance_id:
                    fold.rival = usage
            case RefusedEvent(key):
                fold.refused.append(event)
                is_own = self.instance_id.encode() in (record.value or b"")
                if record.topic is TopicKind.USAGE and key == broker_key(self._broker_id) and not is_own:
                    self._schedule.force()  # or compaction would leave nothing but it
            case MalformedEvent():
                fold.malformed.append(malformed_sentence(event))

    def _take_brokers(self, news: ClusterNews, moment: Moment) -> None:
        settings, view, active = self._settings, self._view, news.active_brokers
        self._listed.take(news, view, moment, settings, self._local, was_read=self._usage.was_read)
        joined = view.joined(moment.wall, self._broker_id)
        if active is not None:
            if self._membership.update(active, moment.wall, joined):
                self._schedule.force()  # an agent that starts now has not seen it
            self._schedule.interval_seconds = regular_interval_seconds(
                len(active), settings.interval_seconds, settings.staleness_seconds
            )
        self._joining = self._membership.joining(moment.wall, joined, view.removals(moment.wall))

    def _decide(self, own: UsageRecord | None, moment: Moment, news: ClusterNews) -> Decision | None:
        settings, view = self._settings, self._view
        causes: tuple[UndeterminedCause, ...] = ()
        if news.topic_refused is not None:
            causes = (UndeterminedCause.TOPIC_REFUSED,)
        elif not self._usage.was_read:
            causes = (UndeterminedCause.NOT_READ,)
        situation = Situation(
            active_brokers=self._membership.active,
            joining_brokers=self._joining,
            self_id=self._broker_id,
            own=own,
            cluster_causes=causes,
            known_brokers=self._listed.brokers.known,
        )
        staleness = timedelta(seconds=settings.staleness_seconds)
        policy = PolicySettings(settings.fallback_action, staleness, settings.scope)
        decision = decide(view, situation, policy, moment.wall)
        self.decides = self.decides or self._may_decide(decision, own, moment, news)
        return decision if self.decides else None

    def _may_decide(
        self, decision: Decision, own: UsageRecord | None, moment: Moment, news: ClusterNews
    ) -> bool:
        """Return whether the first decision need not wait any longer."""
        own_breach = own is not None and own.votes != () and own.votes[0].headroom == 0
        waited = moment.monotonic_seconds - self._started.monotonic_seconds
        answered = news.active_brokers is not None or self._usage.caught_up
        covered = moment.boot.uptime_ms < self._covered_until_uptime_ms
        patience_seconds = START_PATIENCE_SECONDS if answered or covered else LONELY_PATIENCE_SECONDS
        if own_breach or news.topic_refused is not None or waited >= patience_seconds:
            return True
        orders_read = self._orders.caught_up or not news.orders_readable
        if not self._usage.was_read or not orders_read or self._membership.active is None or own is None:
            return False
        # The echo of our own first record: without it we would be undetermined to ourselves.
        return all(entry.broker_id != self._broker_id for entry in decision.undetermined)

    def _enforce(self, verification: Verification, moment: Moment, news: ClusterNews) -> Enforcement:
        """Decide whether the decision is enforced, and remember the first time for later starts."""
        enforced = self._grant.judge(self._settings.mode, verification, news, moment.monotonic_seconds)
        if enforced.newly_granted and news.cluster_id is not None:
            self._grant.cluster_id = news.cluster_id
            self._local.remember_grant(news.cluster_id, moment)
        return enforced

    def _write(
        self,
        decision: Decision | None,
        enforced: Enforcement,
        own: UsageRecord | None,
        moment: Moment,
        news: ClusterNews,
    ) -> tuple[bool, str | None]:
        cluster_id = news.cluster_id or self._grant.cluster_id
        if decision is None:
            return False, None
        if cluster_id is None:
            return False, "the decision file is not written: the cluster's id is not known yet"
        maintenance = self._view.order_in_force(BrokerOrder.MAINTENANCE, self._broker_id, moment.wall)
        content = (
            decision.headroom,
            decision.reasons,
            decision.undetermined,
            decision.covered,
            decision.scope,
            decision.hold,
            enforced.mode,
            cluster_id,
            maintenance,
        )
        age_seconds = moment.monotonic_seconds - self._written_at_seconds
        if content == self._written and age_seconds < min(REWRITE_SECONDS, self._settings.lease_seconds / 3):
            return False, None
        self._decision_sequence += 1
        shortest = timedelta(seconds=self._settings.lease_seconds)
        lease = lease_of(shortest, decision.hold, maintenance, moment)
        document = decision_document(
            decision,
            cluster_id=cluster_id,
            broker_id=self._broker_id,
            sequence=self._decision_sequence,
            mode=enforced.mode,
            lease=lease,
            own_log_dirs=None if own is None else own_log_dirs(own.volumes),
        )
        error = self._local.write(document)
        if error is not None:
            # It may have got as far as the file: the next cycle writes, whatever it decides.
            self._written = None
            return False, error
        self._written = content
        self._written_at_seconds = moment.monotonic_seconds
        return True, None
