"""An operator's questions and changes: topics' settings, and the committed offsets of consumer groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names are not marked as exported
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from kquota.kafka.admin import AdminConnection, Pending
from kquota.kafka.errors import KafkaFailure, Operation
from kquota.retention.inflow import NO_THROTTLE

Offsets = Mapping[tuple[str, int], int]
_OWN = (ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DYNAMIC_BROKER_CONFIG)


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """A setting of a topic or broker: the value in force, and its own, None where a default holds."""

    in_force: str
    own: str | None


@dataclass(frozen=True, slots=True)
class PartitionReplicas:
    """The brokers of a partition, the preferred leader first, and whether all of them are in sync."""

    brokers: tuple[int, ...]
    in_sync: bool


class OperatorConnection(AdminConnection):
    """An Admin client with an operator's credentials."""

    def settings_of(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | KafkaFailure]:
        """Ask for the settings in force of several topics at a time."""
        asked = {topic: self.topic_settings(topic) for topic in topics}
        return {topic: pending.result() for topic, pending in asked.items()}

    def setting(self, kind: ResourceType, resource_name: str, name: str) -> Pending[TopicSetting]:
        """Ask for one setting of a topic or a broker."""
        resource = ConfigResource(kind, resource_name)

        def read(answer: Mapping[str, ConfigEntry]) -> TopicSetting:
            entry = answer.get(name)
            if entry is None:  # Kafka has a broker's throttle in its answer only where it is set
                return TopicSetting(str(NO_THROTTLE), None)
            own = entry.value if ConfigSource(entry.source) in _OWN else None
            return TopicSetting(str(entry.value), own)

        return self._ask(
            lambda client: client.describe_configs([resource], request_timeout=self._timeout_seconds)[
                resource
            ],
            read,
            Operation.DESCRIBE_CONFIGS,
            resource_name if kind is ResourceType.TOPIC else None,
        )

    def replicas(self, topic: str) -> Pending[Mapping[int, PartitionReplicas]]:
        """Ask for the replicas of each partition of a topic."""

        def read(answer: Any) -> Mapping[int, PartitionReplicas]:
            return {
                one.id: PartitionReplicas(
                    tuple(node.id for node in one.replicas), len(one.isr) == len(one.replicas)
                )
                for one in answer.partitions
            }

        return self._ask(
            lambda client: client.describe_topics(
                TopicCollection([topic]), request_timeout=self._timeout_seconds
            )[topic],
            read,
            Operation.DESCRIBE,
            topic,
        )

    def replicas_of(self, topics: Iterable[str]) -> Mapping[str, PartitionReplicas] | KafkaFailure:
        """Ask for the replicas of several topics' partitions, named as in ``visits-3``; the first failure."""
        asked = {topic: self.replicas(topic) for topic in topics}
        found: dict[str, PartitionReplicas] = {}
        for topic, pending in asked.items():
            answer = pending.result()
            if isinstance(answer, KafkaFailure):
                return answer
            found |= {f"{topic}-{partition}": one for partition, one in answer.items()}
        return found

    def racks(self) -> Pending[Mapping[int, str | None]]:
        """Ask for the racks of all brokers; None for one without."""
        return self._ask(
            lambda client: client.describe_cluster(request_timeout=self._timeout_seconds),
            lambda answer: {node.id: node.rack for node in answer.nodes},
            Operation.DESCRIBE,
        )

    def alter(
        self,
        kind: ResourceType,
        resource_name: str,
        name: str,
        value: str | None,
        *,
        validate_only: bool = False,
    ) -> Pending[None]:
        """Ask for one setting of a topic or a broker to be changed, or with None to be the default again.

        With `validate_only` nothing is changed: the answer is whether it could be.
        """
        operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        entry = ConfigEntry(name, value, incremental_operation=operation)
        resource = ConfigResource(kind, resource_name, incremental_configs=[entry])
        return self._ask(
            lambda client: client.incremental_alter_configs(
                [resource], request_timeout=self._timeout_seconds, validate_only=validate_only
            )[resource],
            lambda _nothing: None,
            Operation.ALTER_CONFIGS,
            resource_name if kind is ResourceType.TOPIC else None,
        )

    def committed(self) -> Mapping[str, Offsets] | KafkaFailure:
        """Ask for the committed offsets of all consumer groups; the first failure if one can't be asked."""
        groups = self._ask(
            lambda client: client.list_consumer_groups(request_timeout=self._timeout_seconds),
            lambda answer: [one.group_id for one in answer.valid],
            Operation.DESCRIBE,
        ).result()
        if isinstance(groups, KafkaFailure):
            return groups
        asked = {group: self._offsets(group) for group in groups}
        found: dict[str, Offsets] = {}
        for group, pending in asked.items():
            offsets = pending.result()
            if isinstance(offsets, KafkaFailure):
                return offsets
            found[group] = offsets
        return found

    def _offsets(self, group: str) -> Pending[Offsets]:
        def read(answer: Any) -> Offsets:
            return {
                (one.topic, one.partition): one.offset
                for one in answer.topic_partitions
                if one.error is None and one.offset >= 0
            }

        return self._ask(
            lambda client: client.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group)], request_timeout=self._timeout_seconds
            )[group],
            read,
            Operation.DESCRIBE,
        )


def lagging(connection: AdminConnection, broker_id: int) -> Pending[frozenset[str]]:
    """Ask for the partitions, named as in ``visits-3``, of which a broker has a replica that is not in sync.

    Topics that our principal may not describe are left out.
    """
    return connection.metadata(
        lambda answer: frozenset(
            f"{topic}-{one.id}"
            for topic, found in answer.topics.items()
            for one in found.partitions.values()
            if broker_id in one.replicas and broker_id not in one.isrs
        )
    )
