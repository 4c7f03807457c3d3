"""The agent put together: its Kafka side, its local side, and the cycle between them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from kquota.disks.server_properties import BrokerProperties
from kquota.formats.record_verifier import ReplayGuard
from kquota.formats.records import LONGEST_ORDER
from kquota.formats.signature_headers import ORDERS_TOLERANCE_MS
from kquota.formats.topic_replay import REVOKED_AGAIN
from kquota.guard.agent_state import (
    FILE_NAME,
    ActiveBrokers,
    AgentState,
    AgentStateFile,
    GoodConfiguration,
    OrdersRead,
)
from kquota.guard.broker_host import BrokerHost
from kquota.guard.cycle import Cycle
from kquota.guard.cycle_messages import CycleMessages
from kquota.guard.inputs import JumpDetector, Moment
from kquota.guard.kafka_side import KafkaSide
from kquota.guard.listed import listed_brokers
from kquota.guard.pace import Pace
from kquota.guard.report import CycleReport
from kquota.guard.state_writer import StateWriter
from kquota.history.history import HistoryRecorder
from kquota.host.boot_clock import BootClock
from kquota.journal.active_problems import ActiveProblem, ActiveProblems
from kquota.journal.journal import Entry, MessageId
from kquota.kafka.config import ConfigurationError
from kquota.kafka.delivery import PublicationState
from kquota.kafka.documents import to_json
from kquota.kafka.errors import Kind
from kquota.quotas.leaders import LeaderWatch
from kquota.retention.cordoning import LogDirCordon
from kquota.retention.growth import PauseGrowth
from kquota.retention.topic_sizes_scan import ContentsWatch
from kquota.service.metrics import AgentMetrics
from kquota.service.state_collector import Figures
from kquota.settings.model import Settings
from kquota.settings.problems import SettingsError
from kquota.trust.signing import (
    RecordSigner,
    own_certificate,
    signer_of,
    signer_problems,
    verifier_of,
)

_GOODBYE_SECONDS = 1.0
# Until the first decision everything is news, including events that are no records.
_START_WAIT_SECONDS = 0.02
# While all is calm, only the passing of time needs a cycle: a broker that falls silent, a report that is due.
# Five cycles a second cost half of an idle agent's processor time.
_CALM_WAIT_SECONDS, _CALM_WAIT_RATIO = 0.5, 0.1
# More than there are orders in a large cluster; they fit the state file with all else that is in it.
_MOST_ORDERS_KEPT = 1000

# A follower acts on a cycle's report, and returns what is wrong now and what is to be logged.
Follower = Callable[[CycleReport], Iterable[ActiveProblem | Entry]]


class Agent:
    """One broker's agent, from start to close; ``run_cycle`` is called for ever by the daemon."""

    def __init__(self, settings: Settings, properties: BrokerProperties, metrics: AgentMetrics) -> None:
        """Start the clients and the sampling.

        Raises:
            ConfigurationError: librdkafka refuses a property.
            SettingsError: ``limits.volumes`` can't be used with the volumes that were found, or a file that
                ``signing`` names can't be used.
            OSError: a directory of ours can't be used, or no client can be started.
        """
        self._boot_clock = BootClock()
        self._jumps = JumpDetector()
        self._pace = Pace(time.monotonic())
        self._metrics = metrics
        self._state_file = AgentStateFile(settings.state_dir / FILE_NAME, take_over=True)
        self._states = StateWriter(self._state_file)
        state, self._state_problem = self._state_file.load()
        self.broker_id = _broker_id(settings, properties)
        self._messages = CycleMessages(self.broker_id)
        self._growth = PauseGrowth(self.broker_id)
        self._problems = ActiveProblems()
        self._counters, self._orders_counters = ReplayGuard(), ReplayGuard()
        self._orders_kept: int | None = None
        self._is_calm = False
        self._figures = Figures()
        self._connect(settings, properties, state)
        self._cycle = Cycle(
            settings,
            self.broker_id,
            self._local,
            Moment.now(self._boot_clock),
            granted_for=state.granted_for(self.broker_id),
            covered_until_uptime_ms=self._local.covered_until_uptime_ms,
            verifier=self._kafka.knowledge.usage.verifier,
            orders_verifier=self._kafka.knowledge.orders.verifier,
            listed=listed_brokers(state),
        )
        self._history = HistoryRecorder(
            self.broker_id, self._cycle.instance_id, settings.history_interval_seconds
        )

    def reconfigure(self, settings: Settings, properties: BrokerProperties) -> None:
        """Go on with other settings: new clients, the same view of the cluster.

        Raises:
            ConfigurationError, SettingsError, OSError: as at the start; the agent then goes on as it was.
        """
        broker_id = _broker_id(settings, properties)
        if broker_id != self.broker_id:  # its log dirs must not be reported as ours
            raise ConfigurationError(
                f"the configuration is for node id {broker_id}, and this agent speaks for broker"
                f" {self.broker_id}: restart it, if that is meant"
            )
        kafka, local = self._kafka, self._local
        watches = self._leaders, self._contents, self._cordon
        # `kquota volumes --accept` has changed the file. The state in memory counts where the file is broken
        # or gone, or could not be written.
        state = local.state
        if self._states.settle(_GOODBYE_SECONDS) and self._state_file.path.exists():
            loaded, self._state_problem = self._state_file.load()
            state = state if self._state_problem else loaded
        knowledge = kafka.knowledge
        same_topic = knowledge.usage.topic == settings.topics.usage.name
        partitions = knowledge.usage.partitions if same_topic else None
        self._connect(settings, properties, state, local.offline_log_dirs, partitions)
        for watch in watches:
            watch.close()
        _close(kafka, local)
        verifiers = [reader.verifier for reader in self._kafka.knowledge.readers]
        self._cycle.configure(settings, self._local, *verifiers)
        self._history.sample_interval_seconds = settings.history_interval_seconds

    def remember_configuration(self, good: GoodConfiguration) -> None:
        """Have the configuration in force remembered: it answers a bad one at a restart."""
        self._local.remember_configuration(good)

    def run_cycle(self) -> tuple[CycleReport, list[Entry]]:
        """Wait for news, at most one sampling interval or while all is calm a bit longer, then run a cycle.

        Returns its report, and what is to be logged.
        """
        if self._cycle.decides:
            wait_seconds = self._calm_wait_seconds if self._is_calm else self._wait_seconds
            rest_seconds = self._pace.rest_seconds(time.monotonic())
        else:
            wait_seconds, rest_seconds = _START_WAIT_SECONDS, 0.0
        if self._cycle.publishes_next:
            wait_seconds = rest_seconds = 0.0
        gathered = self._kafka.gather(wait_seconds, rest_seconds=rest_seconds, alarm=self._local.alarm)
        self._cycle.take(gathered)
        moment = Moment.now(self._boot_clock)
        started_seconds = time.monotonic()
        self._recall_orders()
        for topic in self._cycle.take_revocations():
            self._kafka.read_again(topic, REVOKED_AGAIN)
        report = self._cycle.run(moment, self._kafka.news(moment.monotonic_seconds))
        self._local.wake_at(report.own)
        self._is_calm = report.is_calm
        found = [one for follow in self._followers for one in follow(report)]
        entries = [one for one in found if isinstance(one, Entry)]
        standing = [one for one in found if isinstance(one, ActiveProblem)]
        entries += self._problems.follow(standing, moment.monotonic_seconds)
        ended_seconds = time.monotonic()
        self._pace.cycle_ended(ended_seconds - started_seconds, ended_seconds)
        self._metrics.cycle_completed(ended_seconds - started_seconds, moment.wall.timestamp())
        return report, entries

    def close(self) -> None:
        """End sampling and clients."""
        self._growth.close()
        self._leaders.close()
        self._contents.close()
        self._cordon.close()
        _close(self._kafka, self._local)
        self._states.close(_GOODBYE_SECONDS)

    def _connect(
        self,
        settings: Settings,
        properties: BrokerProperties,
        state: AgentState,
        offline_log_dirs: tuple[str, ...] = (),
        partitions: int | None = None,
    ) -> None:
        """Build and start both sides; on an error everything stays as it was."""
        known = state.active_brokers
        signer, topic = signer_of(settings, self.broker_id), settings.topics.usage.name
        record_signer = (
            None if signer is None else RecordSigner(signer, topic, self._counters, state.signing_counter)
        )
        verifier = verifier_of(settings, self._counters)
        orders_topic, of_orders = settings.topics.orders.name, self._orders_counters
        kafka = KafkaSide(
            settings,
            self.broker_id,
            None if known is None else known.cluster_id,
            partitions=partitions,
            verifier=verifier,
            orders_verifier=None if verifier is None else verifier.of_topic(orders_topic, of_orders),
            record_signer=record_signer,
        )
        try:
            local = BrokerHost(
                settings,
                replace(properties, node_id=self.broker_id),
                self._states,
                state,
                kafka.publish,
                kafka.client_id_prefix,
                offline_log_dirs,
            )
        except OSError:
            kafka.close()
            raise
        try:
            leaders = LeaderWatch(kafka.admin, settings.decision_file, self.broker_id, self._boot_clock)
            contents = ContentsWatch(kafka.admin, settings.segments, properties, settings.decision_file)
            local.wait_for_volumes(settings.hang_seconds)
        except (OSError, SettingsError):
            local.close()
            kafka.close()
            raise
        self._kafka, self._local, self._record_signer, self._leaders = kafka, local, record_signer, leaders
        self._contents, self._figures.signing = contents, settings.signing.mode
        self._cordon = LogDirCordon(
            kafka.admin,
            self.broker_id,
            settings.cordon,
            state.cordoned_log_dirs,
            release_margin=settings.release_margin_ratio,
            settle=self._states.settle,
            remember=local.remember_cordoned,
        )
        self._followers: tuple[Follower, ...] = (
            contents.follow,
            self._record,
            self._remember,
            self._messages.follow,
            self._growth.follow,
            self._follow_edges,
            leaders.follow,
            self._cordon.follow,
            self._show,
        )
        self._publication_errors: Counter[Kind] = Counter()
        self._history_dropped = 0
        self._wait_seconds = settings.sample_interval_seconds
        calm_seconds = min(_CALM_WAIT_SECONDS, _CALM_WAIT_RATIO * settings.interval_seconds)
        self._calm_wait_seconds = max(self._wait_seconds, calm_seconds)
        kafka.start()

    def _record(self, report: CycleReport) -> Iterable[Entry]:
        """Publish the records of the history."""
        for document in self._history.record(report, self._contents.take_unseen()):
            self._kafka.history.publish(str(self.broker_id).encode(), to_json(document))
        return ()

    def _remember(self, report: CycleReport) -> Iterable[Entry]:
        """Keep in the state file what a later start needs."""
        ids, cluster_id = report.news.active_brokers, report.news.cluster_id
        if ids is not None and cluster_id is not None:
            self._local.remember_brokers(ActiveBrokers(cluster_id, tuple(sorted(ids)), report.moment.wall))
            self._figures.identity = str(self.broker_id), cluster_id
        self._remember_orders(report.moment)
        if self._record_signer is not None:
            self._local.remember_counter(self._record_signer.last, report.moment)
        return ()

    def _show(self, report: CycleReport) -> Iterable[Entry]:
        """Show the cycle in the metrics, and what followed it."""
        figures = self._figures
        figures.growing, figures.cordoned = self._growth.growing, self._cordon.ours
        figures.contents = self._contents.contents
        self._metrics.show(report, replace(figures))
        return ()

    def _recall_orders(self) -> None:
        """Take in once whose orders were read before the start, if they were this cluster's."""
        knowledge = self._kafka.knowledge
        verifier, known = knowledge.orders.verifier, self._local.state.orders_read
        if self._orders_kept is not None or verifier is None or knowledge.active_brokers is None:
            return  # before the brokers' first answer the cluster may be another one, and nothing is read
        if known is not None and known.cluster_id == knowledge.cluster_id:
            revoked = verifier.authorities.revoked()
            self._orders_counters.recall(one for one in known.counters if one.certificate not in revoked)
        self._orders_kept = self._orders_counters.changes

    def _remember_orders(self, moment: Moment) -> None:
        cluster_id, changes = self._kafka.knowledge.cluster_id, self._orders_counters.changes
        if self._orders_kept is None or cluster_id is None or changes == self._orders_kept:
            return
        self._orders_kept = changes
        since_ms = round((moment.wall - LONGEST_ORDER).timestamp() * 1000) - ORDERS_TOLERANCE_MS
        kept = self._orders_counters.kept(since_ms, _MOST_ORDERS_KEPT)
        self._local.remember_orders(OrdersRead(cluster_id, kept))

    def _follow_edges(self, report: CycleReport) -> Iterator[ActiveProblem | Entry]:
        """Yield what is wrong at the edges, outside the cycle itself, and what happened there."""
        kafka, knowledge, figures = self._kafka, self._kafka.knowledge, self._figures
        usage, history = kafka.usage.state(), kafka.history.state()
        yield from knowledge.standing()
        if (failure := kafka.usage.credentials_problem()) is not None:  # all clients have the same files
            yield ActiveProblem.of("credentials", failure)
        if usage.standing_failure is not None:
            yield ActiveProblem.of("publish", usage.standing_failure, MessageId.PUBLISH_FAILED)
        denied = history.standing_failure
        if denied is not None and denied.kind is Kind.ACL_DENIED:  # others report shared failures
            yield ActiveProblem.of("history", denied)
        own = own_certificate(self._record_signer, knowledge.usage.verifier)
        yield from signer_problems(self._record_signer, own, report.moment.wall)
        problems = {"read": self._state_problem, "write": self._states.problem, **self._local.problems}
        for what, problem in problems.items():
            if problem:
                yield ActiveProblem(MessageId.STATE_FILE_BROKEN, f"state file: {what}", "", problem)
        figures.connected, figures.certificate_revoked = usage.connected, None if own is None else own.revoked
        end = None if own is None else own.authority_end
        figures.authority_expiry_seconds = None if end is None else end.timestamp()
        if (seen := knowledge.certificate) is not None:
            expires = None if seen.certificate is None else seen.certificate.not_after.timestamp()
            figures.certificate_expiry_seconds = expires
        if knowledge.usage.verifier is not None:
            figures.revoked_certificates = len(knowledge.usage.verifier.authorities.revoked())
        self._metrics.file_write_errors.labels(FILE_NAME).inc(self._states.drain_failures())
        self._count_failures(usage, history)
        for reason in knowledge.drain_restarts():
            yield Entry.of(MessageId.KAFKA_TROUBLE, reason)
        jump_seconds = self._jumps.jump_seconds(report.moment)
        if jump_seconds:
            self._metrics.clock_jumps.inc()
            sentence = f"the wall clock jumped by {jump_seconds:+.1f} s; leases are not affected"
            yield Entry.of(MessageId.CLOCK_JUMPED, sentence)

    def _count_failures(self, usage: PublicationState, history: PublicationState) -> None:
        knowledge, metrics = self._kafka.knowledge, self._metrics
        for kind, count in knowledge.drain_errors().items():
            metrics.kafka_errors.labels(kind).inc(count)
        for operation, count in knowledge.drain_denied().items():
            metrics.denied.labels(operation).inc(count)
        metrics.read_errors.inc(knowledge.drain_read_failures())
        for kind, count in (Counter(usage.errors) - self._publication_errors).items():
            metrics.publish_errors.labels(kind).inc(count)
        self._publication_errors = Counter(usage.errors)
        metrics.history_dropped.inc(history.dropped - self._history_dropped)
        self._history_dropped = history.dropped


def _broker_id(settings: Settings, properties: BrokerProperties) -> int:
    return properties.node_id if settings.broker.node_id is None else settings.broker.node_id


def _close(kafka: KafkaSide, local: BrokerHost) -> None:
    """End both sides; records that were handed over are delivered if that takes no longer than a second."""
    local.close()
    kafka.usage.flush(_GOODBYE_SECONDS)
    kafka.close()
