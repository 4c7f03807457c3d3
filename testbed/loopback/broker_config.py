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
class Voter:
    """A controller of the quorum."""

    node_id: int
    controller_port: int


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


def server_properties(
    *,
    node_id: int,
    roles: Iterable[str],
    ports: NodePorts,
    voters: Sequence[Voter],
    log_dirs: Sequence[Path],
    metadata_log_dir: Path | None,
    replication: int,
    tls: tuple[CertificateAuthority, Identity] | None,
    super_users: Sequence[str] | None,
    extra: Mapping[str, str],
) -> dict[str, str]:
    """The properties of one node.

    Listeners: CLIENTS (plain text, for applications), INTERNAL (between brokers and for agents; mutual TLS
    with `tls`), CONTROLLER (the same). `super_users` None means no authorizer. `extra` wins over everything
    else.
    """
    roles = tuple(roles)
    secure = "SSL" if tls else "PLAINTEXT"
    listeners: dict[str, int] = {}
    if "broker" in roles:
        listeners |= {CLIENTS: ports.clients, INTERNAL: ports.internal}
    if "controller" in roles:
        listeners |= {CONTROLLER: ports.controller}
    properties = _SMALL_AND_QUICK | {
        "process.roles": ",".join(roles),
        "node.id": str(node_id),
        "controller.quorum.voters": ",".join(
            f"{voter.node_id}@{LOOPBACK}:{voter.controller_port}" for voter in voters
        ),
        "controller.listener.names": CONTROLLER,
        "listeners": ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in listeners.items()),
        "listener.security.protocol.map": f"{CLIENTS}:PLAINTEXT,{INTERNAL}:{secure},{CONTROLLER}:{secure}",
        "log.dirs": ",".join(str(path) for path in log_dirs),
        "default.replication.factor": str(replication),
        "offsets.topic.replication.factor": str(replication),
        "transaction.state.log.replication.factor": str(replication),
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": str(replication),
        "share.coordinator.state.topic.min.isr": "1",
    }
    if "broker" in roles:
        properties["inter.broker.listener.name"] = INTERNAL
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
