"""Systems on a loopback cluster: a subclass names jars, broker properties, and further processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from conformance.system import Limits, Report, System
from testbed.loopback.cluster import ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.node import ALL_COMPILERS, KafkaNode, NodeLayout
from testbed.loopback.processes import ChildProcess
from testbed.loopback.volumes import VolumeSpec

_STOP_SECONDS = 20.0


class LoopbackBroker:
    """A node as the suite sees it."""

    def __init__(self, node: KafkaNode) -> None:
        self._node = node

    @property
    def volumes(self) -> tuple[Path, ...]:
        """The mount points of its log dirs."""
        return tuple(volume.mount_point for volume in self._node.volumes)

    def running(self) -> bool:
        """Whether its process runs."""
        return self._node.running()

    def start(self) -> None:
        """Start it; returns at once."""
        self._node.start()

    def stop(self) -> None:
        """End it; killed when that takes too long."""
        self._node.stop(_STOP_SECONDS)


class LoopbackPlace:
    """A loopback cluster as the suite sees it."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster
        self.brokers: Mapping[int, LoopbackBroker] = {
            node.node_id: LoopbackBroker(node) for node in cluster.brokers
        }

    @property
    def path(self) -> Path:
        """The cluster's directory."""
        return self._cluster.path

    @property
    def bootstrap_servers(self) -> str:
        """The plain-text listener."""
        return self._cluster.bootstrap_servers

    def environment(self) -> dict[str, str]:
        """The environment of processes that end with the cluster."""
        return self._cluster.environment()


class LoopbackSystem(System):
    """Three combined nodes, the same for every system; replication over TLS, applications in plain text."""

    def class_path(self) -> tuple[Path, ...]:
        """Return jars for the brokers' class path, fetched or built if they are missing."""
        return ()

    def properties(self, limits: Limits, bootstrap_servers: str) -> Mapping[str, str]:
        """Return broker properties, the same for all."""
        return {}

    def node_properties(self, layout: NodeLayout, broker_id: int) -> Mapping[str, str]:
        """Return broker properties that hold paths."""
        return {}

    def start_beside(self, cluster: KafkaCluster, limits: Limits) -> list[ChildProcess]:
        """Start what runs besides the brokers, which serve already."""
        return []

    def wait_until_ready(self, cluster: KafkaCluster) -> None:
        """Wait, for a bounded time, until the system is at work."""

    @contextmanager
    def running(
        self, volumes: Mapping[int, tuple[int, ...]], limits: Limits, report: Report
    ) -> Iterator[LoopbackPlace]:
        """Run the cluster, then the processes besides it."""
        spec = ClusterSpec(
            nodes=tuple(
                NodeSpec(
                    node_id=broker_id,
                    volumes=tuple(map(VolumeSpec, sizes)),
                    jvm_options=ALL_COMPILERS,
                )
                for broker_id, sizes in volumes.items()
            ),
            node_properties=self.node_properties,
            address_properties=lambda bootstrap: self.properties(limits, bootstrap),
            class_path=self.class_path(),
        )
        with KafkaCluster(spec, self.runtime, report=report) as cluster:
            beside = self.start_beside(cluster, limits)
            try:
                self.wait_until_ready(cluster)
                yield LoopbackPlace(cluster)
            finally:
                for process in beside:
                    process.terminate(_STOP_SECONDS)
