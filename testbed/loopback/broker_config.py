"""server.properties of the nodes of a loopback cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import javaproperties

from testbed.loopback.certificates import CertificateAuthority, Identity
from testbed.loopback.ports import LOOPBACK

CLIENTS, INTERNAL, CONTROLLER = "CLIENTS", "INTERNAL", "CONTROLLER"


@dataclass(frozen=True)
class NodePorts:
    """Ports on 127.0.0.1; a node without the role leaves its port unused."""

    clients: int
    internal: int
    controller: int


@dataclass(frozen=True)
class Controller:
    """A node with the controller's role, now or later."""

    node_id: int
    port: int

    @property
    def address(self) -> str:
        """host:port of its listener."""
        return f"{LOOPBACK}:{self.port}"


# Small buffers, few threads, quick elections: many brokers share a small machine.
_SMALL_AND_QUICK = {
    "num.network.threads": "2",
    "num.io.threads": "4",
    "num.replica.fetchers": "1",
    "background.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    # A node that comes back is let in when its last session has run out.
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
    # Otherwise each controller writes, and waits for its disk, twice a second where nothing happens.
    "metadata.max.idle.interval.ms": "5000",
}


def role_properties(roles: Iterable[str], ports: NodePorts) -> dict[str, str]:
    """The properties that a node's roles decide: the roles themselves and their listeners."""
    roles = tuple(roles)
    listeners: dict[str, int] = {}
    if "broker" in roles:
        listeners |= {CLIENTS: ports.clients, INTERNAL: ports.internal}
    if "controller" in roles:
        listeners |= {CONTROLLER: ports.controller}
    properties = {
        "process.roles": ",".join(roles),
        "listeners": ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in listeners.items()),
    }
    return properties | ({"inter.broker.listener.name": INTERNAL} if "broker" in roles else {})


def server_properties(
    *,
    node_id: int,
    roles: Iterable[str],
    ports: NodePorts,
    controllers: Sequence[Controller],
    dynamic_quorum: bool,
    log_dirs: Sequence[Path],
    metadata_log_dir: Path | None,
    replication: int,
    tls: tuple[CertificateAuthority, Identity] | None,
    super_users: Sequence[str] | None,
    extra: Mapping[str, str],
) -> dict[str, str]:
    """The properties of one node.

    Listeners: CLIENTS (plain text, for applications), INTERNAL (between brokers and for agents; mutual TLS
    with `tls`), CONTROLLER (the same). The `controllers` are the voters, or, with `dynamic_quorum`, where to
    ask for these. `super_users` None means no authorizer. `extra` wins over everything else.
    """
    secure = "SSL" if tls else "PLAINTEXT"
    addresses = [one.address for one in controllers]
    voters = [f"{one.node_id}@{one.address}" for one in controllers]
    properties = _SMALL_AND_QUICK | {
        "node.id": str(node_id),
        "controller.listener.names": CONTROLLER,
        "listener.security.protocol.map": f"{CLIENTS}:PLAINTEXT,{INTERNAL}:{secure},{CONTROLLER}:{secure}",
        "log.dirs": ",".join(str(path) for path in log_dirs),
        "default.replication.factor": str(replication),
        "offsets.topic.replication.factor": str(replication),
        "transaction.state.log.replication.factor": str(replication),
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": str(replication),
        "share.coordinator.state.topic.min.isr": "1",
    }
    properties |= role_properties(roles, ports)
    if dynamic_quorum:
        properties["controller.quorum.bootstrap.servers"] = ",".join(addresses)
    else:
        properties["controller.quorum.voters"] = ",".join(voters)
    if metadata_log_dir is not None:
        properties["metadata.log.dir"] = str(metadata_log_dir)
    if tls is not None:
        properties |= _mutual_tls(*tls)
    if super_users is not None:
        properties |= {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": ";".join(super_users),
        }
    return properties | dict(extra)


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    """Write a Java properties file."""
    with path.open("w", encoding="utf-8") as file:
        javaproperties.dump(dict(properties), file, timestamp=False)


def _mutual_tls(authority: CertificateAuthority, identity: Identity) -> dict[str, str]:
    properties = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(identity.keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
    }
    for listener in (INTERNAL, CONTROLLER):
        properties[f"listener.name.{listener.lower()}.ssl.client.auth"] = "required"
    return properties
