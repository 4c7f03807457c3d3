"""What is measured: one broker each, with nothing, with kquota, or with the peer plug-in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Self

import javaproperties

from bench.decisions import BROKER_ID, write_decision
from bench.peer_jars import PEER, ensure_peer_jars
from kquota.write.decision_file import DecisionFile
from testbed.loopback.callback_jar import find_callback_jar
from testbed.loopback.cluster import ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.node import ALL_COMPILERS, KafkaNode, NodeLayout
from testbed.loopback.plug_in import broker_files, loaded_plug_in
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB, VolumeSpec

PEER_CHECK_SECONDS = 2
"""The shortest interval of the peer's looks that works: 1 switches them off."""
_PROPERTIES = {"file.delete.delay.ms": "500", "log.segment.bytes": str(64 * MIB)}


class System:
    """One broker under measurement, a context manager."""

    def __init__(self, name: str, spec: ClusterSpec, runtime: KafkaRuntime) -> None:
        self.name = name
        self.cluster = KafkaCluster(spec, runtime)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.cluster)
            self.prepare()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    @property
    def node(self) -> KafkaNode:
        """The broker."""
        return self.cluster.nodes[BROKER_ID]

    def prepare(self) -> None:
        """Have it let everybody produce."""


class HoldableSystem(System, ABC):
    """One that can be told to hold producers, as the stock broker can't."""

    @abstractmethod
    def make_fresh(self) -> None:
        """See that nothing is left of an earlier pause."""

    @abstractmethod
    def decide(self, factor: Fraction) -> None:
        """Order a throttle factor: 1 is OPEN, 0 is PAUSE."""


def holdable(system: System) -> HoldableSystem:
    """The system, as one that holds producers.

    Raises:
        TypeError: it can't be told to.
    """
    if not isinstance(system, HoldableSystem):
        raise TypeError(f"{system.name} can't be told to hold producers")
    return system


class KquotaSystem(HoldableSystem):
    """kquota, told what to do by its decision file as by an agent."""

    def __init__(self, name: str, spec: ClusterSpec, runtime: KafkaRuntime) -> None:
        super().__init__(name, spec, runtime)
        self._sequence = 0

    def prepare(self) -> None:
        """Write the first decision, OPEN: until then the decision is lost."""
        self.decide(Fraction(1))

    def make_fresh(self) -> None:
        """Nothing to do: a mute ends within seconds of its pause."""

    def decide(self, factor: Fraction) -> None:
        """Write the decision; the plug-in reads it within a tenth of a second."""
        self._sequence += 1
        write_decision(
            DecisionFile(broker_files(self.node.layout).decision),
            factor,
            cluster_id=self.cluster.cluster_id,
            sequence=self._sequence,
        )


class PeerSystem(HoldableSystem):
    """The peer plug-in, told what to do by its broker's disk: that is filled, and given room again."""

    _VOLUME_BYTES = 6144 * MIB
    _LIMIT_BYTES = 2048 * MIB
    _LEFT_BYTES = 1800 * MIB

    def __init__(self, name: str, spec: ClusterSpec, runtime: KafkaRuntime) -> None:
        super().__init__(name, spec, runtime)
        self._has_paused = False

    def prepare(self) -> None:
        """Load the plug-in."""
        load_peer(self.cluster, self._LIMIT_BYTES)

    def make_fresh(self) -> None:
        """Restart the broker after a pause: its mutes outlive that by far, and hold new clients, too."""
        if self._has_paused:
            self.node.stop()
            self.cluster.restart(BROKER_ID)
            self._has_paused = False

    def decide(self, factor: Fraction) -> None:
        """Fill the disk beyond the limit, or give it room; it knows no factor between.

        Raises:
            ValueError: a factor between 0 and 1.
        """
        if factor not in (0, 1):
            raise ValueError(f"factor: {PEER} knows 0 and 1, not {float(factor):g}")
        volume = self.node.volumes[0]
        if factor == 0:
            self._has_paused = True
            volume.fill(self._LEFT_BYTES)
        else:
            (volume.mount_point / "ballast").unlink(missing_ok=True)

    @classmethod
    def volume(cls) -> VolumeSpec:
        """Its disk."""
        return VolumeSpec(cls._VOLUME_BYTES)


def load_peer(cluster: KafkaCluster, min_available_bytes: int) -> None:
    """Configure the peer now that the ports are known at which it asks its brokers, and restart them."""
    prefix = "client.quota.callback.static"
    for node in cluster.brokers:
        node.stop()
    for node in cluster.brokers:
        with node.layout.server_properties.open(encoding="utf-8") as file:
            configured: dict[str, str] = javaproperties.load(file)
        node.configure(
            configured
            | {
                "client.quota.callback.class": "io.strimzi.kafka.quotas.StaticQuotaCallback",
                f"{prefix}.kafka.admin.bootstrap.servers": cluster.bootstrap_servers,
                f"{prefix}.storage.per.volume.limit.min.available.bytes": str(min_available_bytes),
                f"{prefix}.storage.check-interval": str(PEER_CHECK_SECONDS),
            }
        )
        node.start()
    cluster.wait_until_serving(timeout_seconds=120.0)


STOCK, GOVERNOR, GOVERNOR_3 = "stock", "governor", "governor W=3"
FENCE, FENCE_3, PEER_NAME = "fence", "fence W=3", "peer"


def make_system(name: str, runtime: KafkaRuntime) -> System:
    """The system of that name, not yet started.

    Raises:
        ValueError: there is none of that name.
    """
    if name == STOCK:
        return System(name, _spec(), runtime)
    if name == PEER_NAME:
        node = NodeSpec(node_id=BROKER_ID, volumes=(PeerSystem.volume(),), jvm_options=ALL_COMPILERS)
        return PeerSystem(name, replace(_spec(class_path=ensure_peer_jars()), nodes=(node,)), runtime)
    short_window = {"quota.window.num": "3"}
    fence = {
        "authorizer.class.name": "org.kquota.KquotaAuthorizer",
        "kquota.fence.authorizer.class": "none",  # as the stock broker beside it: without an authorizer
    }
    own: dict[str, dict[str, str]] = {
        GOVERNOR: {},
        GOVERNOR_3: short_window,
        FENCE: fence,
        FENCE_3: fence | short_window,
    }
    if name not in own:
        raise ValueError(f"{name!r} is none of {', '.join([STOCK, *own, PEER_NAME])}")
    spec = _spec(
        own[name], node_properties=loaded_plug_in(["User:nobody-here"]), class_path=(find_callback_jar(),)
    )
    return KquotaSystem(name, spec, runtime)


def _spec(
    properties: Mapping[str, str] | None = None,
    *,
    node_properties: Callable[[NodeLayout, int], Mapping[str, str]] | None = None,
    class_path: tuple[Path, ...] = (),
) -> ClusterSpec:
    return ClusterSpec(
        nodes=(NodeSpec(node_id=BROKER_ID, jvm_options=ALL_COMPILERS),),
        tls=False,
        properties={**_PROPERTIES, **(properties or {})},
        node_properties=node_properties,
        class_path=class_path,
    )
