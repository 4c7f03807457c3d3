"""A cluster with the fence around Kafka's own authorizer, and the agent's part: the decision files."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kquota.guard.decision_file import DecisionFile
from testbed.loopback.certificates import principal_of
from testbed.loopback.cluster import ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.node import NodeLayout
from testbed.loopback.plug_in import FENCE, broker_files, classes_of, loaded_plug_in
from testbed.loopback.runtime import KafkaRuntime
from tests.integration.waiting import eventually

_LEASE_SECONDS = 600
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_FACTORS = {"OPEN": 1.0, "THROTTLE": 0.2, "PAUSE": 0.0}


class FencedCluster:
    """The cluster: brokers 1 and 2, and controller 3, which the roles leave its own authorizer."""

    def __init__(
        self,
        runtime: KafkaRuntime,
        callback_jar: Path,
        properties: Mapping[str, str] | None = None,
        *,
        fenced: Iterable[int] = (1, 2),
    ) -> None:
        spec = ClusterSpec(
            nodes=(
                NodeSpec(node_id=1, roles=("broker",)),
                NodeSpec(node_id=2, roles=("broker",)),
                NodeSpec(node_id=3, roles=("controller",)),
            ),
            authorizer=True,
            properties={"allow.everyone.if.no.acl.found": "true", **(properties or {})},
            node_properties=partial(_plug_in, frozenset(fenced), runtime.has_plug_in_metrics),
            class_path=(callback_jar,),
        )
        self.cluster = KafkaCluster(spec, runtime)
        self._sequence = 0

    def decide(self, state: str) -> None:
        """Write it to every broker's decision file, and wait until each running broker applies it."""
        self._sequence += 1
        for node in self.cluster.brokers:
            DecisionFile(broker_files(node.layout).decision).write(
                {
                    "schema_version": 1,
                    "cluster_id": self.cluster.cluster_id,
                    "broker_id": node.node_id,
                    "sequence": self._sequence,
                    "mode": "enforce",
                    "state": state,
                    "factor": _FACTORS[state],
                    "boot_id": _BOOT_ID.read_text().strip(),
                    "valid_until_uptime_ms": int((_uptime_seconds() + _LEASE_SECONDS) * 1000),
                }
            )
        for node in self.cluster.brokers:
            if node.running():
                self.wait_until_applied(node.node_id, state)

    def wait_until_applied(self, node_id: int, state: str) -> None:
        """Wait until that broker applies this state, by the fence unless it is OPEN."""
        mechanism = "none" if state == "OPEN" else "fence"
        eventually(
            lambda: (
                self.applied(node_id).get("sequence") == self._sequence
                and self.applied(node_id)["mechanism"] == mechanism
            ),
            f"node {node_id} applies {state} by {mechanism}",
        )

    def applied(self, node_id: int) -> dict[str, Any]:
        """That broker's report of its applied state; empty before the first one."""
        try:
            document = json.loads(broker_files(self.cluster.nodes[node_id].layout).applied.read_text())
        except FileNotFoundError:
            return {}
        assert isinstance(document, dict)
        return document


def _uptime_seconds() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


def _plug_in(
    fenced: Collection[int], has_metrics: bool, layout: NodeLayout, node_id: int
) -> Mapping[str, str]:
    properties = loaded_plug_in([principal_of("kquota-agent")])(layout, node_id)
    properties |= classes_of(has_metrics=has_metrics)
    if node_id not in fenced:
        del properties[FENCE]
    properties["kquota.topics.file"] = str(broker_files(layout).decision.with_name("topics.json"))
    return properties
