"""The configuration as a model: every key of ``agent.yml``, its unit (in the name) and its default."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from kquota.formats.signature_headers import SigningMode
from kquota.policy.cordon import Cordon
from kquota.policy.decision import FallbackAction, Mode, Scope
from kquota.policy.inodes import InodeLimits
from kquota.policy.limits import InvalidLimit, Limit, LimitPair, check_pair
from kquota.settings import values
from kquota.settings.kafka_options import KafkaOptions, KafkaSecretsSection, KafkaSection, is_secret
from kquota.settings.problems import REDACTED, Allowed, Finding, Problem, refuse

# Two of Kafka's times must pass well before silence counts as "undetermined" and holds the whole cluster:
# broker.session.timeout.ms (default 9 s), until a dead host is fenced, and replica.lag.time.max.ms (default
# 30 s), for which a failed replica of the usage topic can keep agents from reading all records.
SAFE_STALENESS_SECONDS = 40
# A third of the unit's WatchdogSec: systemd ends an agent that completes no cycle for this long.
MAX_SAMPLE_INTERVAL_SECONDS = 10.0
_LONGER = (
    ("staleness_seconds", "interval_seconds", "or every record would be stale"),
    ("lease_seconds", "interval_seconds", "or the lease would run out between two decisions"),
    ("lease_seconds", "hang_seconds", "or a hung volume would let the lease run out"),
    ("staleness_seconds", "hang_seconds", "or a hung volume would make records stale"),
)
_SIGNING_FILES = {
    "certificate_file": "ssl.certificate.location",
    "key_file": "ssl.key.location",
    "ca_file": "ssl.ca.location",
}
SourceOf = Callable[[Sequence[str]], str]
"""Returns the source of a key: file and line, or the variable."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _empty_is_default(cls, value: Any) -> Any:
        # "topics:" with every key below it commented out
        return {} if value is None else value


class BrokerSection(_Section):
    """The broker on the agent's host."""

    server_properties: values.AbsolutePath
    node_id: values.NodeId = None


class UsageTopicSection(_Section):
    """The compacted topic of usage records."""

    name: values.TopicName = "__kquota_volume_usage"
    partitions: values.Partitions = None
    replication_factor: values.ReplicationFactor = None


class HistoryTopicSection(_Section):
    """The bounded topic of history records."""

    name: values.TopicName = "__kquota_history"
    partitions: values.Partitions = None
    replication_factor: values.ReplicationFactor = None
    retention_hours: values.Hours = 720
    retention_bytes: values.Bytes = 1_073_741_824


class OrdersTopicSection(_Section):
    """The compacted topic of operators' orders."""

    name: values.TopicName = "__kquota_orders"
    partitions: values.FewPartitions = 1
    replication_factor: values.ReplicationFactor = None


class TopicsSection(_Section):
    """The agent's topics; ``create`` decides whether a missing one is created."""

    create: values.Boolean = True
    usage: UsageTopicSection = UsageTopicSection()
    history: HistoryTopicSection = HistoryTopicSection()
    orders: OrdersTopicSection = OrdersTopicSection()


class VolumeLimitsSection(_Section):
    """Limits of one volume; a missing limit is the broker's."""

    hard: values.LimitOrNone = None
    soft: values.LimitOrNone = None


class InodeLimitsSection(_Section):
    """The free inodes, in percent of all, of volumes whose number of inodes is fixed; soft 0 is no limit."""

    soft_free_percent: values.Percent = Fraction(5)
    hard_free_percent: values.Percent = Fraction(2)

    @model_validator(mode="after")
    def _soft_is_more_than_hard(self) -> Self:
        try:
            _ = self.limits
        except InvalidLimit as error:
            finding = Finding(("soft_free_percent",), f"is out of order: {error}", "more than hard, or 0")
            refuse([finding])
        return self

    @property
    def limits(self) -> InodeLimits | None:
        """Both limits; None where inodes are not judged."""
        if self.soft_free_percent == 0:
            return None
        return InodeLimits.of(self.soft_free_percent, self.hard_free_percent)


class LimitsSection(_Section):
    """Limits of this broker, and per volume (by a path on it) where they differ."""

    hard: values.LimitValue = Limit.parse({"type": "MinFreePercentage", "level": 5})
    soft: values.LimitValue = Limit.parse({"type": "MinFreePercentage", "level": 15})
    inodes: InodeLimitsSection = InodeLimitsSection()
    volumes: Annotated[
        dict[values.VolumePath, VolumeLimitsSection],
        Allowed("a mapping of paths, one of each volume (its mount point or a log dir), to hard and soft"),
    ] = {}

    @model_validator(mode="after")
    def _soft_is_below_hard(self) -> Self:
        reached_first = "a soft limit that is reached before the hard one"
        pairs = {("soft",): (self.soft, self.hard)} | {
            ("volumes", path): (own.soft or self.soft, own.hard or self.hard)
            for path, own in self.volumes.items()
            if own.soft or own.hard
        }
        findings = []
        for key, (soft, hard) in pairs.items():
            try:
                check_pair(soft, hard)
            except InvalidLimit as error:
                findings.append(Finding(key, f"is out of order: {error}", reached_first))
        if findings:
            refuse(findings)
        return self

    def own(self, path: str | None) -> VolumeLimitsSection:
        """Return the value of ``volumes`` for that path."""
        return VolumeLimitsSection() if path is None else self.volumes[path]

    def pair(self, path: str | None) -> LimitPair:
        """Return the limits that hold for the volume with that path in ``volumes``; None is one without."""
        own = self.own(path)
        return LimitPair(soft=own.soft or self.soft, hard=own.hard or self.hard)


class SigningSection(_Section):
    """Whether records of the usage topic are signed; a missing file is the one of the Kafka clients."""

    mode: values.SigningModeValue = SigningMode.OFF
    certificate_file: values.SigningFile = None
    key_file: values.SigningFile = None
    ca_file: values.SigningFile = None
    revoked_file: values.RevokedFile = None


class SegmentsSection(_Section):
    """How often the agent looks at the segments on the log dirs, and at how many files in a second."""

    interval_seconds: values.SecondsOrZero = 600.0
    files_per_second: values.FilesPerSecond = 1400


class MetricsSection(_Section):
    """Where the agent's Prometheus endpoint listens."""

    listen: values.Listen = values.ListenAddress("127.0.0.1", 9464)
    web_config_file: values.AbsolutePathOrNone = None


class LogSection(_Section):
    """The settings of logging."""

    level: values.LogLevelValue = values.LogLevel.INFO


@dataclass(frozen=True, slots=True)
class Sources:
    """The document that was read, and the place of each key; equal values from elsewhere are equal."""

    of: SourceOf = field(compare=False)
    document: Callable[[], Mapping[str, Any]] = field(compare=False)


class Settings(BaseModel):
    """The whole configuration, valid and frozen.

    Building one by hand takes the keys of ``agent.yml`` and asks neither file nor environment; see
    :func:`kquota.settings.load` for those.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    broker: BrokerSection
    kafka: KafkaSection
    kafka_secrets: KafkaSecretsSection = {}
    topics: TopicsSection = TopicsSection()
    signing: SigningSection = SigningSection()
    limits: LimitsSection = LimitsSection()
    release_margin_ratio: values.Ratio = Field(default_factory=lambda: values.exact("0.1"))
    mode: values.ModeValue = Mode.OBSERVE
    scope: values.ScopeValue = Scope.CLUSTER
    cordon: values.CordonValue = Cordon.OFF
    fallback_action: values.FallbackValue = FallbackAction.PAUSE
    fill_floor_bytes_per_second: values.BytesPerSecond = 125_000_000
    relief_protected: Annotated[
        tuple[values.ProtectedTopic, ...], Allowed("a list of topics' names, or beginnings of names with a *")
    ] = ()
    relief_copy_bytes_per_second: values.BytesPerSecond = 50_000_000
    interval_seconds: values.Seconds = 5.0
    sample_interval_seconds: values.Seconds = 0.2
    staleness_seconds: values.Seconds = 60.0
    join_grace_seconds: values.SecondsOrZero = 60.0
    future_tolerance_seconds: values.SecondsOrZero = 30.0
    lease_seconds: values.Seconds = 30.0
    hang_seconds: values.Seconds = 5.0
    brokers_interval_seconds: values.Seconds = 1.0
    history_interval_seconds: values.Seconds = 30.0
    segments: SegmentsSection = SegmentsSection()
    decision_file: values.AbsolutePath = Path("/run/kquota/decision.json")
    applied_file: values.AbsolutePath = Path("/run/kquota-broker/applied.json")
    state_dir: values.AbsolutePath = Path("/var/lib/kquota")
    metrics: MetricsSection = MetricsSection()
    log: LogSection = LogSection()

    _secrets: dict[str, str] = PrivateAttr(default_factory=dict)
    _sources: Sources = PrivateAttr(default_factory=lambda: Sources(lambda _key: "the configuration", dict))

    @model_validator(mode="after")
    def _keys_fit_together(self) -> Self:
        pairs = [(key, getattr(self, key), than, getattr(self, than), why) for key, than, why in _LONGER]
        findings = [
            Finding((key,), f"is {value:g}", f"more than {than}, {bound:g}: {why}", f"{value:g}")
            for key, value, than, bound, why in pairs
            if value <= bound
        ]
        most = MAX_SAMPLE_INTERVAL_SECONDS
        if self.sample_interval_seconds > min(self.interval_seconds, most):
            findings.append(
                Finding.of_value(
                    ("sample_interval_seconds",),
                    f"{self.sample_interval_seconds:g}",
                    f"at most interval_seconds, {self.interval_seconds:g}, and {most:g}",
                )
            )
        named: dict[str, str] = {}
        for section in ("usage", "history", "orders"):
            name = getattr(self.topics, section).name
            other = named.setdefault(name, section)
            if other != section:
                allowed = f"another name than topics.{other}.name"
                findings.append(Finding.of_value(("topics", section, "name"), name, allowed))
        findings += [
            Finding(("kafka_secrets", name), "is also set under kafka", "one of the two")
            for name in self.kafka_secrets
            if name in self.kafka
        ]
        findings += [
            Finding(
                ("signing", key), f"is missing, and kafka: has no {name}", "an absolute path in one of them"
            )
            for key, name in _SIGNING_FILES.items()
            if self.signing.mode is not SigningMode.OFF and self.signing_file(key) is None
        ]
        if findings:
            refuse(findings)
        return self

    def problem(self, key: Sequence[str], wrong: str, allowed: str) -> Problem:
        """Return that a key can't be used on this host, with the place that it is from."""
        return Problem(self._sources.of(key), ".".join(key), None, wrong, allowed)

    def signing_file(self, key: str) -> Path | None:
        """Return the file in force for a key of ``signing``: its own, or that of the Kafka clients."""
        own: Path | None = getattr(self.signing, key)
        named = self.kafka.get(_SIGNING_FILES[key])
        return own if own is not None or not named else Path(named)

    def librdkafka(self) -> KafkaOptions:
        """Return what the operator chose for every Kafka client, secrets from files included."""
        return KafkaOptions({**self.kafka, **self._secrets})

    @property
    def document(self) -> Mapping[str, Any]:
        """The document that was read, in the keys of ``agent.yml``, without the environment's secrets."""
        return self._sources.document()

    def secret_values(self) -> frozenset[str]:
        """Return every value that must not be shown or logged."""
        return self.librdkafka().secret_values() | frozenset(self._secrets.values())

    def redacted(self) -> dict[str, Any]:
        """Return the configuration in the shape of ``agent.yml``, fit for showing: JSON types, no secrets."""
        document = self.model_dump(mode="json")
        document["kafka"] |= {name: REDACTED for name in self._secrets if is_secret(name)}
        return document

    def warnings(self) -> tuple[str, ...]:
        """Return, in sentences, settings that are allowed but seldom intended."""
        found = []
        if self.staleness_seconds <= SAFE_STALENESS_SECONDS:
            found.append(
                f"staleness_seconds is {self.staleness_seconds:g}: it must be well above the cluster's"
                " broker.session.timeout.ms (default 9000) and replica.lag.time.max.ms (default 30000), or"
                f" the death of one host or disk holds the whole cluster; {SAFE_STALENESS_SECONDS} or less"
                " suits only clusters where both are shorter"
            )
        if self.fallback_action is FallbackAction.OPEN:
            found.append(
                "fallback_action is open: while a broker's state can't be determined, its disks may run full"
            )
        is_open = self.metrics.web_config_file is None
        if is_open and self.metrics.listen.host not in ("127.0.0.1", "::1", "localhost"):
            found.append(
                f"metrics.listen is {self.metrics.listen}: the endpoint admits every client and is"
                " reachable from other hosts; metrics.web_config_file can ask clients for certificates"
            )
        return tuple(found)
