"""Client configuration: the operator's dotted librdkafka properties, and what kquota adds to them.

Three layers, the later wins: kquota's defaults, the operator's properties (passed untouched), the properties
that kquota itself depends on. `settings.kafka_options` refuses the last in the operator's mapping.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Role(StrEnum):
    """The purpose of a client; the last part of its `client.id`."""

    PRODUCER = "producer"
    READER = "reader"
    ADMIN = "admin"


class ConfigurationError(ValueError):
    """The `kafka:` properties cannot be used; the text names the property and the allowed values."""


# A broker's restart must be felt for a second at most, so connections are tried again at least once a second.
# Timeouts are well below the staleness threshold: a broker that hangs is given up while its last record is
# fresh.
DEFAULT_PROPERTIES: Mapping[str, str] = {
    "reconnect.backoff.ms": "250",
    "reconnect.backoff.max.ms": "1000",
    "retry.backoff.ms": "100",
    "retry.backoff.max.ms": "1000",
    "socket.connection.setup.timeout.ms": "5000",
    "socket.timeout.ms": "10000",
    "socket.keepalive.enable": "true",
    "topic.metadata.refresh.interval.ms": "30000",
    "topic.metadata.refresh.fast.interval.ms": "100",
    # A topic that was deleted is reported as missing within two seconds; it is created by us, not by
    # waiting.
    "topic.metadata.propagation.max.ms": "2000",
    "metadata.recovery.rebootstrap.trigger.ms": "30000",
    # Client telemetry (KIP-714) belongs to applications; the agent has metrics of its own.
    "enable.metrics.push": "false",
}


@dataclass(frozen=True, slots=True)
class ClientProperties:
    """The operator's dotted properties, and the node id of this agent's broker (or another short name on a
    host without one). `repr` shows no property, for some are secret.
    """

    properties: Mapping[str, str] = field(repr=False)
    node: int | str

    def for_role(self, role: Role, own: Mapping[str, str] | None = None) -> dict[str, str]:
        """All properties of the client for `role`; `own` are those that the role's code depends on."""
        # A producer asks for missing topics to be created by default, with the default cleanup policy.
        ours = {"allow.auto.create.topics": "false", **(own or {}), "client.id": self.client_id(role)}
        return {**DEFAULT_PROPERTIES, **self.properties, **ours}

    def client_id(self, role: Role) -> str:
        """The client id that brokers see in their logs and metrics: `kquota-<node id>-<role>`."""
        return f"kquota-{self.node}-{role}"
