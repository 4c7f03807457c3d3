"""Client configuration: the operator's dotted librdkafka properties, and what kquota adds to them.

Three layers, the later wins: kquota's defaults, the operator's properties (passed untouched), the properties
that kquota itself depends on. The last are refused in the operator's mapping instead of being overruled
silently.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from kquota.settings.kafka_options import OWNED_NAMES, is_secret
from kquota.settings.problems import REDACTED

PropertyValue = str | int | float | bool
"""A value of one librdkafka property, from YAML or the environment."""


class Role(StrEnum):
    """The purpose of a client; the last part of its `client.id`."""

    USAGE = "usage"
    HISTORY = "history"
    READER = "reader"
    ADMIN = "admin"


class ConfigurationError(ValueError):
    """The `kafka:` properties cannot be used; the text names the property and the allowed values."""


# A broker's restart must be felt for a second at most, so connections are tried again at least once a second.
# Timeouts are well below the staleness threshold: a broker that hangs is given up while its last record is
# fresh.
DEFAULT_PROPERTIES: Mapping[str, str] = MappingProxyType(
    {
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
)

ALWAYS_SET: Mapping[str, str] = MappingProxyType(
    {
        # A producer asks for missing topics to be created by default, with the broker's default cleanup
        # policy.
        "allow.auto.create.topics": "false",
    }
)


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ConfigurationError(
        f"kafka.{name}: a {type(value).__name__} is no value of a client property; "
        "allowed are a text, a number, true and false"
    )


@dataclass(frozen=True, slots=True)
class ClientProperties:
    """The operator's dotted properties, checked for names that kquota owns.

    `node` is the node id of this agent's broker (or another short name on a host without one); it becomes
    part of `client.id`. Raises ConfigurationError for an owned name, a value that is no scalar, or without
    bootstrap servers. Secrets appear neither in `repr` nor in `redacted()`.
    """

    properties: Mapping[str, PropertyValue] = field(repr=False)
    node: int | str

    def __post_init__(self) -> None:
        for name, value in self.properties.items():
            if name in OWNED_NAMES:
                raise ConfigurationError(f"kafka.{name}: kquota sets this property itself; remove it")
            _text(name, value)
        if not any(self.properties.get(name) for name in ("bootstrap.servers", "metadata.broker.list")):
            raise ConfigurationError(
                "kafka.bootstrap.servers: missing; name at least one host:port of the listener to use"
            )

    def for_role(self, role: Role, own: Mapping[str, str] | None = None) -> dict[str, str]:
        """All properties of the client for `role`; `own` are those that the role's code depends on."""
        given = {name: _text(name, value) for name, value in self.properties.items()}
        ours = {**ALWAYS_SET, **(own or {}), "client.id": self.client_id(role)}
        return {**DEFAULT_PROPERTIES, **given, **ours}

    def client_id(self, role: Role) -> str:
        """The client id that brokers see in their logs and metrics: `kquota-<node id>-<role>`."""
        return f"kquota-{self.node}-{role}"

    def value(self, name: str) -> str | None:
        """One of the operator's properties as text, or None."""
        given = self.properties.get(name)
        return None if given is None else _text(name, given)

    def redacted(self) -> dict[str, str]:
        """The operator's properties for people to read: secrets replaced."""
        return {
            name: REDACTED if is_secret(name) else _text(name, value)
            for name, value in self.properties.items()
        }

    def __repr__(self) -> str:
        return f"ClientProperties(node={self.node!r}, properties={self.redacted()!r})"
