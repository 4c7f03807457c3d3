"""The topics of ours: their required settings, and how an existing topic compares."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial

from kquota.kafka.admin import TopicFacts
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.settings.model import TopicsSection

USAGE_TOPIC = "__kquota_volume_usage"
HISTORY_TOPIC = "__kquota_history"
ORDERS_TOPIC = "__kquota_orders"

BROKERS_PER_PARTITION = 50
DESIRED_REPLICAS = 3
MAX_RECORD_BYTES = 1_048_576
"""Largest record of any of them. At some 300 bytes a volume there is room for 3,000 volumes."""

_MINUTE_MS = 60_000
_DAY_MS = 86_400_000
_UNLIMITED = "-1"
_OF_ALL = {
    "min.insync.replicas": "1",
    "max.message.bytes": str(MAX_RECORD_BYTES),
    # The broker's clock, not the agent's: a record of an agent whose clock is wrong must not be refused
    # (message.timestamp.after.max.ms) nor keep a segment open. Freshness is judged by SnapshotAt.
    "message.timestamp.type": "LogAppendTime",
    # Losing the newest records to an unclean leader would bring back verdicts that were taken back.
    "unclean.leader.election.enable": "false",
}
# Of the topics that every agent reads as a whole: a broker then judges a batch by its size in an agent's
# memory, and refuses one of a few kilobytes that would be gigabytes there.
_READ_BY_ALL = {**_OF_ALL, "compression.type": "uncompressed"}


@dataclass(frozen=True, slots=True)
class TopicContract:
    """The settings that a topic must have. Those in `required` decide whether it is accepted, the rest is for
    its creation.

    `partitions` and `replication_factor` are None where they follow from the number of brokers.
    """

    name: str
    settings: Mapping[str, str]
    partitions: int | None = None
    replication_factor: int | None = None
    required: tuple[str, ...] = ("cleanup.policy",)

    def partitions_among(self, brokers: int) -> int:
        """How many partitions it gets when it is created in a cluster of `brokers`."""
        return partitions_for(brokers) if self.partitions is None else self.partitions

    def replicas_among(self, brokers: int) -> int:
        """How many replicas each of its partitions is to have in a cluster of `brokers`."""
        return replicas_for(brokers) if self.replication_factor is None else self.replication_factor


def topics_as_configured(topics: TopicsSection) -> tuple[TopicContract, ...]:
    """The usage, the history and the orders topic as the configuration has them."""
    usage, history, orders = topics.usage, topics.history, topics.orders
    bounded = history_topic(
        history.name,
        retention_seconds=history.retention_hours * 3600,
        retention_bytes=history.retention_bytes,
    )
    return tuple(
        replace(contract, partitions=section.partitions, replication_factor=section.replication_factor)
        for contract, section in (
            (usage_topic(usage.name), usage),
            (bounded, history),
            (orders_topic(orders.name), orders),
        )
    )


def usage_topic(name: str = USAGE_TOPIC) -> TopicContract:
    """The compacted topic of usage records.

    A new agent reads all of it before it decides, so it is kept as small as its live keys: segments are
    short (only a closed segment is compacted) and compacted as soon as a tenth of the log is dirty.
    """
    settings = {
        **_READ_BY_ALL,
        "cleanup.policy": "compact",
        # 50 brokers write about 20 kB/s to a partition: a segment closes after some minutes; a
        # small cluster's by time. So at most a few MiB lie before a starting agent.
        "segment.bytes": str(4 * 1_048_576),
        "segment.ms": str(30 * _MINUTE_MS),
        "min.cleanable.dirty.ratio": "0.1",
        # How long a tombstone can be read: longer than any agent takes from the first record to the
        # last.
        "delete.retention.ms": str(_DAY_MS),
    }
    return TopicContract(name, settings, required=("cleanup.policy", "compression.type"))


def orders_topic(name: str = ORDERS_TOPIC) -> TopicContract:
    """The compacted topic of operators' orders: a few records.

    The end of an order is judged by the time at which a broker appended it. A tombstone has to outlive the
    order that it ended, which takes 30 days at most.
    """
    settings = {
        **_READ_BY_ALL,
        "cleanup.policy": "compact",
        "segment.bytes": str(1_048_576),
        "segment.ms": str(_DAY_MS),
        "min.cleanable.dirty.ratio": "0.1",
        "delete.retention.ms": str(31 * _DAY_MS),
    }
    required = ("cleanup.policy", "message.timestamp.type", "compression.type")
    return TopicContract(name, settings, partitions=1, required=required)


def history_topic(
    name: str = HISTORY_TOPIC, *, retention_seconds: int = 30 * 86_400, retention_bytes: int = 1_073_741_824
) -> TopicContract:
    """The history topic: bounded in time and in bytes a partition, whichever comes first.

    It lies on the very disks that kquota guards; to keep more, read it away.
    """
    settings = {
        **_OF_ALL,
        "compression.type": "producer",
        "cleanup.policy": "delete",
        "retention.ms": str(retention_seconds * 1000),
        "retention.bytes": str(retention_bytes),
        # Retention removes whole segments: an eighth of the bound is the most that it can be
        # overdrawn by.
        "segment.bytes": str(max(1_048_576, min(64 * 1_048_576, retention_bytes // 8))),
        "segment.ms": str(_DAY_MS),
    }
    return TopicContract(name, settings)


class Verdict(StrEnum):
    """The result of checking a topic."""

    OK = "ok"
    CREATED = "created"
    REFUSED = "refused"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TopicVerdict:
    """Whether a topic may be used. REFUSED: it must not be read or written. UNKNOWN: it could not be looked
    at (see `failure`), so the last verdict stands. `problems` are settings that are worse than they should
    be, with a sentence each.
    """

    topic: str
    status: Verdict
    sentence: str
    problems: Mapping[str, str] = field(default_factory=dict)
    topic_id: str | None = None
    partitions: int | None = None
    replication_factor: int | None = None
    failure: KafkaFailure | None = None

    @property
    def usable(self) -> bool:
        """Whether the topic is there and as it must be."""
        return self.status in (Verdict.OK, Verdict.CREATED)


def partitions_for(brokers: int) -> int:
    """One partition for each 50 brokers."""
    return max(1, -(-brokers // BROKERS_PER_PARTITION))


def replicas_for(brokers: int) -> int:
    """Three replicas, or as many as there are brokers."""
    return max(1, min(DESIRED_REPLICAS, brokers))


def judge(
    contract: TopicContract,
    facts: TopicFacts,
    settings: Mapping[str, str],
    brokers: int,
    *,
    created: bool = False,
) -> TopicVerdict:
    """Compare a topic with its contract; `brokers` is the number of active brokers."""
    verdict = partial(
        TopicVerdict,
        contract.name,
        topic_id=facts.topic_id,
        partitions=len(facts.partitions),
        replication_factor=facts.replication_factor,
    )
    for name in contract.required:
        found, wanted = settings.get(name, ""), contract.settings[name]
        if {part.strip() for part in found.split(",")} != {wanted}:
            sentence = (
                f"Topic {contract.name} is refused: its {name} is {found or 'unknown'}, "
                f"and must be exactly {wanted}; "
                "set it, or delete the topic and let it be created again."
            )
            failure = KafkaFailure(Kind.TOPIC_REFUSED, sentence, topic=contract.name)
            return verdict(Verdict.REFUSED, sentence, failure=failure)
    problems = dict(_problems(contract, facts, settings, brokers))
    if problems:
        sentence = f"Topic {contract.name} is used, but: {' '.join(problems.values())}"
    else:
        sentence = (
            f"Topic {contract.name} {'was created' if created else 'is as it should be'} "
            f"({len(facts.partitions)} partitions, {facts.replication_factor} replicas)."
        )
    return verdict(Verdict.CREATED if created else Verdict.OK, sentence, problems)


def _problems(
    contract: TopicContract, facts: TopicFacts, settings: Mapping[str, str], brokers: int
) -> Iterator[tuple[str, str]]:
    desired = contract.replicas_among(brokers)
    if facts.replication_factor < desired:
        yield (
            "replicas",
            f"It has {facts.replication_factor} replicas where {desired} are wanted: "
            "add some with kafka-reassign-partitions.",
        )
    in_sync = _number(settings.get("min.insync.replicas"))
    if in_sync is not None and in_sync > 1:
        yield (
            "min.insync.replicas",
            f"min.insync.replicas is {in_sync}: with fewer brokers up nothing can be published; set it to 1.",
        )
    if settings.get("unclean.leader.election.enable") == "true":
        yield (
            "unclean.leader.election.enable",
            "unclean.leader.election.enable is true: records can be lost silently; set it to false.",
        )
    is_judged_by_time = contract.settings["cleanup.policy"] == "compact"
    if is_judged_by_time and settings.get("message.timestamp.type") == "CreateTime":
        yield (
            "message.timestamp.type",
            "message.timestamp.type is CreateTime: a writer with a wrong clock then also sets the time of "
            "storage, which shows the age of a record; set it to LogAppendTime.",
        )
    largest = _number(settings.get("max.message.bytes"))
    if largest is not None and largest > 2 * MAX_RECORD_BYTES:
        yield (
            "max.message.bytes",
            f"max.message.bytes is {largest}: every agent must hold such a record in memory; "
            f"set {MAX_RECORD_BYTES}.",
        )
    for name in ("retention.ms", "retention.bytes"):
        if name in contract.settings and settings.get(name) == _UNLIMITED:
            yield name, f"{name} is unlimited: it fills the disks it reports on."
    if facts.leaderless:
        yield "leaders", f"{len(facts.leaderless)} of its partitions have no leader."


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
