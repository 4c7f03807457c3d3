"""The local side of the agent: this broker's volumes and the files on its host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from kquota.disks.band import bands
from kquota.disks.broker_dirs import Place, with_broker_dirs, with_unformatted
from kquota.disks.broker_process import ProcessWatch
from kquota.disks.identity import VolumeIdentity, remembered_from_json, remembered_to_json
from kquota.disks.observation import Observation, with_offline
from kquota.disks.server_properties import BrokerProperties
from kquota.disks.volume_limits import bound_from_json, refuse_limits
from kquota.disks.volume_watch import VolumeWatch, recorded_volumes
from kquota.formats.records import REGULAR, broker_key
from kquota.formats.usage_format import usage_to_document
from kquota.guard.agent_state import ActiveBrokers, AgentState, EverListed, GoodConfiguration, OrdersRead
from kquota.guard.applied_state import AppliedState, AppliedUnknown, read_applied_state
from kquota.guard.applied_verification import Verification, verify
from kquota.guard.decision_file import DecisionFile, lease_end_uptime_ms
from kquota.guard.inputs import Moment
from kquota.guard.state_writer import StateWriter
from kquota.host.boot_clock import BootClock
from kquota.kafka.delivery import Headers
from kquota.kafka.documents import to_json
from kquota.policy.affected_topics import log_dirs_near_a_limit
from kquota.policy.decision import Scope
from kquota.policy.usage import UsageRecord
from kquota.policy.volume import Volume
from kquota.settings.model import Settings
from kquota.trust.signing import counter_to_remember

# The first look at the broker's process takes milliseconds; a command line may hang with its disk.
_PROCESS_WAIT_SECONDS = 1.0


class BrokerHost:
    """The edges of a cycle on this machine. None of its calls blocks, or raises for an expected failure.

    ``state`` is remembered across restarts. ``problems`` are sentences about remembered values that can't be
    used, by subject.
    """

    def __init__(
        self,
        settings: Settings,
        properties: BrokerProperties,
        states: StateWriter,
        state: AgentState,
        publish: Callable[[bytes, bytes, Headers], None],
        client_id_prefix: str,
        offline_log_dirs: tuple[str, ...] = (),
    ) -> None:
        """Open the files to be written and begin to observe the volumes.

        ``offline_log_dirs`` are those the plug-in was last heard to report, before it is heard again.

        Raises:
            OSError: the decision file's directory can't be used, or no process can be started.
        """
        self.problems: dict[str, str] = {}
        self._settings = settings
        self._properties = properties
        self._states, self.state = states, state
        self._publish = publish
        self._client_id_prefix = client_id_prefix
        self._started = BootClock().now()
        self.covered_until_uptime_ms = lease_end_uptime_ms(settings.decision_file, self._started.boot_id)
        self._decision_file = DecisionFile(settings.decision_file)
        self.offline_log_dirs = offline_log_dirs
        self._broker_dirs: Mapping[str, Place | None] = {}
        self._process = ProcessWatch(properties)
        self._volumes = VolumeWatch(
            properties,
            limits=settings.limits,
            remembered=_remembered(state, self.problems),
            bound=bound_from_json(state.bound_limits),
            interval_seconds=settings.sample_interval_seconds,
            hang_seconds=settings.hang_seconds,
            scope=settings.scope,
        )
        self._volumes.start()

    def wait_for_volumes(self, timeout_seconds: float) -> None:
        """Wait until every log dir has been looked at once, or the time is over.

        Raises:
            SettingsError: ``limits.volumes`` can't be used with the volumes found.
        """
        self._volumes.wait_for_samples(timeout_seconds)
        self._process.latest(min(timeout_seconds, _PROCESS_WAIT_SECONDS))
        refuse_limits(self._settings, self._volumes.observe().limits_problems)

    def observe(self, *, is_active: bool = False) -> Observation:
        """Observe the volumes, and remember the result; ``is_active`` is whether the broker is up.

        The plug-in's report on log dirs counts before the process that the agent sees.
        """
        observation = self._volumes.observe()
        remembered = remembered_to_json(self._volumes.remembered)
        bound = {path: list(ids) for path, ids in self._volumes.bound.items()}
        if (remembered, bound) != (self.state.remembered_volumes, self.state.bound_limits):
            self._remember(replace(self.state, remembered_volumes=remembered, bound_limits=bound))
        looks = self._volumes.looks
        used = self._broker_dirs or self._volumes.used_by(self._process.latest())
        compared = with_broker_dirs(observation, looks, used)
        if is_active:
            compared = with_unformatted(compared, looks)
        return with_offline(compared, self.offline_log_dirs)

    def wake_at(self, record: UsageRecord | None) -> None:
        """Have ``alarm`` readable when a volume's state or topics change from those of this record."""
        volumes = () if record is None else record.volumes
        by_topic = self._settings.scope is Scope.VOLUME
        named = log_dirs_near_a_limit(volumes) if by_topic else frozenset[str]()
        self._volumes.wake_at(bands(volumes, self._settings.release_margin_ratio), named)

    @property
    def alarm(self) -> int | None:
        """The descriptor that becomes readable then, or None."""
        return self._volumes.sampler.alarm

    def recall(self, volumes: Iterable[Volume]) -> None:
        """Compare log dirs that nothing is remembered of with what this broker last reported."""
        self._volumes.recall(recorded_volumes(volumes))

    def publish(self, record: UsageRecord, applied: Mapping[str, object] | None, *, is_news: bool) -> None:
        """Publish this broker's record; one that is no news is marked, so that its readers may rest."""
        value = to_json(usage_to_document(record, applied=applied))
        self._publish(broker_key(self._properties.node_id).encode(), value, () if is_news else (REGULAR,))

    def write(self, document: Mapping[str, object]) -> str | None:
        """Write the decision file; return what went wrong."""
        try:
            self._decision_file.write(document)
        except (OSError, ValueError) as error:
            return f"the decision file {self._settings.decision_file} can't be written: {error}"
        return None

    def applied(
        self, moment: Moment, cluster_id: str | None
    ) -> tuple[AppliedState | AppliedUnknown, Verification]:
        """Read what the plug-in applies; what it says of log dirs stays so until it is heard again."""
        applied = read_applied_state(
            self._settings.applied_file,
            moment.boot,
            broker_id=self._properties.node_id,
            cluster_id=cluster_id,
        )
        if isinstance(applied, AppliedState):
            self.offline_log_dirs = applied.offline_log_dirs
            self._broker_dirs = applied.log_dir_places
            # those seen before we began may have been an earlier agent's, with another principal
            since_ms = self._started.uptime_ms
            seen = tuple(entry for entry in applied.exempt if entry.last_seen_uptime_ms >= since_ms)
            return applied, verify(replace(applied, exempt=seen), self._client_id_prefix, moment.boot)
        return applied, verify(applied, self._client_id_prefix, moment.boot)

    def remember_grant(self, cluster_id: str, moment: Moment) -> None:
        """Persist that this broker was seen to exempt us."""
        self._remember(self.state.with_grant(cluster_id, self._properties.node_id, moment.wall))

    def remember_brokers(self, brokers: ActiveBrokers) -> None:
        """Persist the active brokers where they changed."""
        known = self.state.active_brokers
        if known is None or (known.cluster_id, known.broker_ids) != (brokers.cluster_id, brokers.broker_ids):
            self._remember(replace(self.state, active_brokers=brokers))

    def remember_listed(self, cluster_id: str, broker_ids: frozenset[int]) -> None:
        """Persist which brokers the cluster has ever listed, where they changed."""
        listed = EverListed(cluster_id, tuple(sorted(broker_ids)))
        if listed != self.state.ever_listed:
            self._remember(replace(self.state, ever_listed=listed))

    def remember_counter(self, last: int, moment: Moment) -> None:
        """Persist a bound above the counter of the record signed last, before counters reach it."""
        now_ms = round(moment.wall.timestamp() * 1000)
        counter = counter_to_remember(self.state.signing_counter, last, now_ms)
        if counter != self.state.signing_counter:
            self._remember(replace(self.state, signing_counter=counter))

    def remember_orders(self, orders: OrdersRead) -> None:
        """Persist the counters of the orders that were read, where they changed."""
        if orders != (self.state.orders_read or OrdersRead(orders.cluster_id, ())):
            self._remember(replace(self.state, orders_read=orders))

    def remember_cordoned(self, log_dirs: frozenset[str]) -> None:
        """Persist which log dirs the agent has cordoned."""
        self._remember(replace(self.state, cordoned_log_dirs=tuple(sorted(log_dirs))))

    def remember_configuration(self, good: GoodConfiguration) -> None:
        """Persist the configuration in force, where it changed."""
        if good != self.state.good_configuration:
            self._remember(replace(self.state, good_configuration=good))

    def close(self) -> None:
        """End the sampling."""
        self._volumes.close()

    def _remember(self, state: AgentState) -> None:
        self.state = state
        self._states.save(state)


def _remembered(state: AgentState, problems: dict[str, str]) -> dict[str, VolumeIdentity]:
    try:
        return remembered_from_json(state.remembered_volumes)
    except ValueError as error:
        problems["remembered volumes"] = f"{error}; the last report shows where each log dir belongs"
        return {}
