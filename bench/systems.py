"""The measured systems: one broker each, with nothing, with kquota, or with the peer plug-in."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Self

import javaproperties

from bench.maven import PEER, ensure_peer_jars
from kquota.guard.decision_file import DecisionFile
from kquota.host.boot_clock import BootClock
from kquota.policy.decision import Cause, Decision, Lease, Mode, Reason, decision_document
from testbed.loopback.callback_jar import find_callback_jar
from testbed.loopback.cluster import ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.node import ALL_COMPILERS, KafkaNode
from testbed.loopback.plug_in import FENCE_PROPERTIES, broker_files, loaded_plug_in
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB, VolumeSpec

BROKER_ID = 1
PEER_CHECK_SECONDS = 2
"""The shortest interval of the peer's looks that works: 1 switches them off."""
# One run of the bench is the lease: there is no agent that would renew it.
_LEASE_SECONDS = 3600
_CLOCK = BootClock()
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
        """Have it release all producers."""

    def make_fresh(self) -> None:
        """See that nothing is left of an earlier pause: a mute of ours ends within seconds of it."""

    def decide(self, factor: Fraction) -> None:
        """Order a throttle factor: 1 is OPEN, 0 is PAUSE.

        Raises:
            TypeError: the stock broker can't hold producers.
        """
        raise TypeError(f"{self.name} can't hold producers ({float(factor):g})")

    def baseline_rate(self) -> float:
        """Return the rate that a throttle factor would be of, in bytes per second.

        Raises:
            TypeError: it throttles no producers.
        """
        raise TypeError(f"{self.name} throttles no producers")


class KquotaSystem(System):
    """kquota, controlled by its decision file as by an agent."""

    def prepare(self) -> None:
        """Write the first decision, OPEN: until then the decision is lost."""
        self.decide(Fraction(1))

    def decide(self, factor: Fraction) -> None:
        """Write the decision; the plug-in reads it within a tenth of a second."""
        write_decision(broker_files(self.node.layout).decision, factor, cluster_id=self.cluster.cluster_id)

    def baseline_rate(self) -> float:
        """Return what the plug-in reports."""
        applied = json.loads(broker_files(self.node.layout).applied.read_text("utf-8"))
        return float(applied["governor"]["baseline_byte_rate"])


class PeerSystem(System):
    """The peer plug-in, controlled by its broker's disk: that is filled, and given room again."""

    VOLUME = VolumeSpec(6144 * MIB)
    _LIMIT_BYTES = 2048 * MIB
    _LEFT_BYTES = 1800 * MIB
    _has_paused = False

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


def write_decision(file: Path, factor: Fraction, *, cluster_id: str) -> None:
    """Order a throttle factor in [0, 1] for an hour; the plug-in reads it within a tenth of a second."""
    now, moment = datetime.now(UTC), _CLOCK.now().later(_LEASE_SECONDS)
    cause = Cause.HARD if factor == 0 else Cause.SOFT
    reasons = () if factor == 1 else (Reason(cause, factor, BROKER_ID),)
    document = decision_document(
        Decision(factor, reasons, (), fallback=False, hold=None, decided_at=now),
        cluster_id=cluster_id,
        broker_id=BROKER_ID,
        sequence=time.monotonic_ns(),
        mode=Mode.ENFORCE,
        lease=Lease(now + timedelta(seconds=_LEASE_SECONDS), moment.boot_id, moment.uptime_ms),
    )
    DecisionFile(file).write(document)


STOCK, GOVERNOR = "stock", "governor"
FENCE, FENCE_3, PEER_NAME = "fence", "fence W=3", "peer"
_SHORT_WINDOW = {"quota.window.num": "3"}
_OWN: dict[str, dict[str, str]] = {
    GOVERNOR: {},
    FENCE: FENCE_PROPERTIES,
    FENCE_3: FENCE_PROPERTIES | _SHORT_WINDOW,
}


def make_system(name: str, runtime: KafkaRuntime) -> System:
    """The system of that name, not yet started."""
    node = NodeSpec(node_id=BROKER_ID, jvm_options=ALL_COMPILERS)
    stock = ClusterSpec(nodes=(node,), tls=False, properties=_PROPERTIES)
    if name == STOCK:
        return System(name, stock, runtime)
    if name == PEER_NAME:
        node = replace(node, volumes=(PeerSystem.VOLUME,))
        return PeerSystem(name, replace(stock, nodes=(node,), class_path=ensure_peer_jars()), runtime)
    loaded = replace(
        stock,
        properties=_PROPERTIES | _OWN[name],
        node_properties=loaded_plug_in(["User:nobody-here"]),
        class_path=(find_callback_jar(),),
    )
    return KquotaSystem(name, loaded, runtime)
