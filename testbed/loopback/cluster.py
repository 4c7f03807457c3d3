"""A real Kafka cluster on 127.0.0.1, for the demo and for tests.

    with KafkaCluster(ClusterSpec.of(3), ensure_kafka_runtime()) as cluster:
        cluster.bootstrap_servers ...

Everything it makes is gone when the block ends, see `workspace`.
"""

from __future__ import annotations

import base64
import contextlib
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from testbed.loopback.broker_config import Controller, NodePorts, server_properties
from testbed.loopback.certificates import CertificateAuthority, Identity, principal_of
from testbed.loopback.clients import visible_brokers
from testbed.loopback.node import KafkaNode, NodeFailed, NodeLayout, node_name
from testbed.loopback.ports import LOOPBACK, PortReservation
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import VolumeSpec, make_loop_volume
from testbed.loopback.workspace import Workspace

BOTH_ROLES = ("broker", "controller")
_POLL_SECONDS = 0.1
_CLAIM = re.compile(r"Becoming the active controller at epoch (\d+)")


@dataclass(frozen=True, kw_only=True)
class NodeSpec:
    """One node. `volumes`: a log dir on a loop-mounted ext4 each (root only); else plain directories."""

    node_id: int
    roles: tuple[str, ...] = BOTH_ROLES
    volumes: tuple[VolumeSpec, ...] = ()
    log_dir_count: int = 1
    separate_metadata_dir: bool = False
    """`metadata.log.dir` apart from the log dirs, so that the node outlives its first one."""
    metadata_volume: VolumeSpec | None = None
    """The same, on a loop-mounted ext4 of its own."""
    properties: Mapping[str, str] = field(default_factory=dict)
    class_path: tuple[Path, ...] = ()
    jvm_options: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ClusterSpec:
    """The nodes to start. Properties: the cluster's, then `node_properties`, then a node's; the last wins."""

    nodes: tuple[NodeSpec, ...]
    tls: bool = True
    authorizer: bool = False
    super_users: tuple[str, ...] = ()
    """Besides the nodes' own principals; such as `User:CN=kquota-agent-1,O=kquota`."""
    properties: Mapping[str, str] = field(default_factory=dict)
    node_properties: Callable[[NodeLayout, int], Mapping[str, str]] | None = None
    """Given a node's layout and id, for properties that hold paths."""
    address_properties: Callable[[str], Mapping[str, str]] | None = None
    """Given the bootstrap servers for applications, for properties that hold addresses."""
    class_path: tuple[Path, ...] = ()
    heap_mebibytes: int = 256
    dynamic_quorum: bool = False
    """Voters come and go at run time, see `quorum`. The first controller begins as the only one."""

    def __post_init__(self) -> None:
        ids = [node.node_id for node in self.nodes]
        if not ids or len(set(ids)) != len(ids):
            raise ValueError(f"nodes: node ids must be given and unique, got {ids}")
        if not any("controller" in node.roles for node in self.nodes):
            raise ValueError("nodes: one of them at least must be a controller")
        if self.authorizer and not self.tls:
            raise ValueError("authorizer: without tls every controller would be ANONYMOUS")

    @classmethod
    def of(cls, count: int, **node_options: object) -> ClusterSpec:
        """`count` equal combined nodes with the ids 1…count; options as in NodeSpec."""
        first = NodeSpec(node_id=1, **node_options)  # type: ignore[arg-type]
        return cls(nodes=tuple(replace(first, node_id=number) for number in range(1, count + 1)))


def _new_cluster_id() -> str:
    """Return a random id; kafka-storage takes one that begins with a dash for an option."""
    while True:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not cluster_id.startswith("-"):
            return cluster_id


class KafkaCluster:
    """The running cluster, a context manager: serving when the block begins, gone without trace after it."""

    def __init__(
        self,
        spec: ClusterSpec,
        runtime: KafkaRuntime,
        *,
        root: Path | None = None,
        keep: bool = False,
        report: Callable[[str], None] = lambda _line: None,
        start_timeout_seconds: float = 120.0,
    ) -> None:
        self.spec = spec
        self.runtime = runtime
        self.cluster_id = _new_cluster_id()
        self.nodes: dict[int, KafkaNode] = {}
        self._workspace = Workspace(root, keep=keep)
        self._ports = PortReservation()
        self._stack = contextlib.ExitStack()
        self._authority: CertificateAuthority | None = None
        self._report = report
        self._start_timeout_seconds = start_timeout_seconds

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._ports)
            stack.enter_context(self._workspace)
            self._prepare()
            self._format()
            self._report(f"starting {len(self.nodes)} Kafka {self.runtime.version} nodes on 127.0.0.1")
            for node in self.nodes.values():
                node.start()
            self.wait_until_serving(timeout_seconds=self._start_timeout_seconds)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    @property
    def path(self) -> Path:
        """The cluster's directory; its content goes with the cluster."""
        return self._workspace.path

    @property
    def brokers(self) -> list[KafkaNode]:
        """The nodes with the broker role, by id."""
        return [node for node in self.nodes.values() if node.is_broker]

    @property
    def bootstrap_servers(self) -> str:
        """The plain-text listener for applications, of all brokers."""
        return ",".join(node.clients_address for node in self.brokers)

    @property
    def internal_bootstrap_servers(self) -> str:
        """The listener for brokers and agents, of all brokers."""
        return ",".join(node.internal_address for node in self.brokers)

    @property
    def authority(self) -> CertificateAuthority:
        """Signs more certificates; only with tls."""
        if self._authority is None:
            raise ValueError("this cluster has no tls")
        return self._authority

    def active_controller(self) -> int:
        """The id of the node that claims it for the highest epoch, by the nodes' logs.

        Raises:
            NodeFailed: none has claimed it yet.
        """
        claims = {
            int(epoch): node.node_id
            for node in self.nodes.values()
            for epoch in _CLAIM.findall(node.layout.log.read_text("utf-8", "replace"))
        }
        if not claims:
            raise NodeFailed("no node has become the active controller")
        return claims[max(claims)]

    def environment(self) -> dict[str, str]:
        """Environment for further processes (agents, producers): it makes them end with the cluster."""
        return self._workspace.environment()

    def client_configuration(
        self, common_name: str | None = None, *, broker: int | None = None
    ) -> dict[str, str]:
        """librdkafka properties: an application's, or, with a common name, that identity's on INTERNAL.

        A certificate is issued at the first use of a name. With `broker`, only that one is the bootstrap
        server.
        """
        nodes = self.brokers if broker is None else [self.nodes[broker]]
        if common_name is None:
            return {"bootstrap.servers": ",".join(node.clients_address for node in nodes)}
        configuration = {"bootstrap.servers": ",".join(node.internal_address for node in nodes)}
        if self._authority is None:
            return configuration
        directory = self._authority.certificate.parent
        if not (directory / f"{common_name}.pem").exists():
            self._authority.issue(common_name)
        return configuration | {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self._authority.certificate),
            "ssl.certificate.location": str(directory / f"{common_name}.pem"),
            "ssl.key.location": str(directory / f"{common_name}.key"),
        }

    def administrator_configuration(self) -> dict[str, str]:
        """librdkafka properties for administration: anybody may, on the listener for applications."""
        return self.client_configuration()

    def wait_until_serving(
        self, node_ids: Iterable[int] | None = None, *, timeout_seconds: float = 120.0
    ) -> None:
        """Wait until those nodes (default: all that run) accept connections and their brokers see each other.

        Raises:
            NodeFailed: one of them ended, or time is up; with the end of its log.
        """
        wanted = (
            [self.nodes[i] for i in node_ids] if node_ids else [n for n in self.nodes.values() if n.running()]
        )
        brokers = {node.node_id for node in wanted if node.is_broker}
        deadline = time.monotonic() + timeout_seconds
        for node in wanted:
            while not (node.accepts_connections() and self._lists(node, brokers)):
                if time.monotonic() > deadline:
                    raise NodeFailed(
                        f"node {node.node_id} does not serve after {timeout_seconds:g} s; "
                        f"end of {node.layout.log}:\n"
                        f"{node.log_tail()}"
                    )
                time.sleep(_POLL_SECONDS)

    def restart(self, node_id: int, *, timeout_seconds: float = 120.0) -> None:
        """Start a node that has ended (stop or kill it first) and wait until it serves."""
        self.nodes[node_id].start()
        self.wait_until_serving([node_id], timeout_seconds=timeout_seconds)

    @staticmethod
    def _lists(node: KafkaNode, brokers: set[int]) -> bool:
        return not node.is_broker or brokers <= visible_brokers(node.clients_address)

    def _prepare(self) -> None:
        spec = self.spec
        identities: dict[int, Identity] = {}
        if spec.tls:
            self._authority = CertificateAuthority(self.path / "certificates")
            identities = {node.node_id: self._authority.issue(node_name(node.node_id)) for node in spec.nodes}
        ports = {node.node_id: NodePorts(*(self._ports.reserve() for _ in range(3))) for node in spec.nodes}
        controllers = [
            Controller(node.node_id, ports[node.node_id].controller)
            for node in spec.nodes
            if "controller" in node.roles or spec.dynamic_quorum
        ]
        super_users = [*(principal_of(node_name(node.node_id)) for node in spec.nodes), *spec.super_users]
        brokers = [node.node_id for node in spec.nodes if "broker" in node.roles]
        addresses = ",".join(f"{LOOPBACK}:{ports[broker_id].clients}" for broker_id in brokers)
        of_addresses = spec.address_properties(addresses) if spec.address_properties else {}
        for node in spec.nodes:
            layout = self._lay_out(node)
            of_layout = spec.node_properties(layout, node.node_id) if spec.node_properties else {}
            kafka_node = KafkaNode(
                node.node_id,
                node.roles,
                runtime=self.runtime,
                layout=layout,
                ports=ports[node.node_id],
                environment=self.environment(),
                class_path=tuple(self._private_copy(path) for path in (*spec.class_path, *node.class_path)),
                heap_mebibytes=spec.heap_mebibytes,
                jvm_options=node.jvm_options,
            )
            kafka_node.configure(
                server_properties(
                    node_id=node.node_id,
                    roles=node.roles,
                    ports=ports[node.node_id],
                    controllers=controllers,
                    dynamic_quorum=spec.dynamic_quorum,
                    log_dirs=layout.log_dirs,
                    metadata_log_dir=layout.metadata_log_dir,
                    replication=min(3, len(brokers)),
                    tls=(self._authority, identities[node.node_id]) if self._authority else None,
                    super_users=super_users if spec.authorizer else None,
                    extra={**spec.properties, **of_addresses, **of_layout, **node.properties},
                )
            )
            self.nodes[node.node_id] = kafka_node

    def _private_copy(self, path: Path) -> Path:
        """A jar of the cluster's own: replacing one under a JVM breaks the classes it has not loaded yet."""
        if path.is_dir():
            return path
        copy = self.path / "class-path" / path.name
        if not copy.exists():
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, copy)
        return copy

    def _lay_out(self, node: NodeSpec) -> NodeLayout:
        directory = self.path / f"node-{node.node_id}"
        directory.mkdir()
        volumes = tuple(
            make_loop_volume(volume, directory / f"disk-{number}.img", directory / f"disk-{number}")
            for number, volume in enumerate(node.volumes, start=1)
        )
        if volumes:  # below the mount point, next to ext4's lost+found, which is no partition
            log_dirs = tuple(volume.mount_point / "kafka" for volume in volumes)
        else:
            log_dirs = tuple(directory / f"log-{number}" for number in range(1, node.log_dir_count + 1))
        metadata_log_dir = directory / "metadata" if node.separate_metadata_dir else None
        metadata_volume = None
        if node.metadata_volume is not None:
            mount_point = directory / "disk-metadata"
            metadata_volume = make_loop_volume(
                node.metadata_volume, mount_point.with_suffix(".img"), mount_point
            )
            metadata_log_dir = mount_point / "kraft"
        for path in (*log_dirs, *([metadata_log_dir] if metadata_log_dir else [])):
            path.mkdir()
        return NodeLayout(directory, log_dirs, metadata_log_dir, volumes, metadata_volume)

    def _format(self) -> None:
        formatting = {
            node_id: node.format_command(self.cluster_id, quorum=self._quorum_options(node_id))
            for node_id, node in self.nodes.items()
        }
        for node_id, process in formatting.items():
            if (code := process.popen.wait()) != 0:
                raise NodeFailed(f"formatting node {node_id} ended with {code}:\n{process.log_tail()}")

    def _quorum_options(self, node_id: int) -> tuple[str, ...]:
        """How to format a node of a dynamic quorum."""
        if not self.spec.dynamic_quorum:
            return ()
        first = next(node.node_id for node in self.spec.nodes if "controller" in node.roles)
        return ("--standalone",) if node_id == first else ("--no-initial-controllers",)
