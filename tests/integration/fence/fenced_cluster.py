"""A cluster with the fence around Kafka's own authorizer, and the agent's part: the decision files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kquota.demo.cluster import ClusterSpec, KafkaCluster, NodeSpec
from kquota.demo.node import NodeLayout
from kquota.demo.runtime import KafkaRuntime
from kquota.write.decision_file import DecisionFile
from tests.integration.waiting import eventually

_LEASE_SECONDS = 600
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_FACTORS = {"OPEN": 1.0, "PAUSE": 0.0}


class FencedCluster:
    """The cluster: brokers 1 and 2, and controller 3, which only delegates."""

    def __init__(
        self, runtime: KafkaRuntime, callback_jar: Path, properties: Mapping[str, str] | None = None
    ) -> None:
        spec = ClusterSpec(
            nodes=(
                NodeSpec(node_id=1, roles=("broker",)),
                NodeSpec(node_id=2, roles=("broker",)),
                NodeSpec(node_id=3, roles=("controller",)),
            ),
            authorizer=True,
            properties={"allow.everyone.if.no.acl.found": "true", **(properties or {})},
            node_properties=_plug_in,
            class_path=(callback_jar,),
        )
        self.cluster = KafkaCluster(spec, runtime)
        self._sequence = 0

    def decide(self, state: str) -> None:
        """Have every broker's decision file say so, and wait until each running broker applies it."""
        self._sequence += 1
        for node in self.cluster.brokers:
            DecisionFile(_decision_file(node.layout)).write(
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
        """Wait until that broker applies this state, by the fence in PAUSE."""
        mechanism = "fence" if state == "PAUSE" else "none"
        eventually(
            lambda: (
                self.applied(node_id).get("sequence") == self._sequence
                and self.applied(node_id)["mechanism"] == mechanism
            ),
            f"node {node_id} applies {state} by {mechanism}",
        )

    def applied(self, node_id: int) -> dict[str, Any]:
        """What that broker says it applies; empty while it has not said anything."""
        try:
            document = json.loads(_applied_file(self.cluster.nodes[node_id].layout).read_text())
        except FileNotFoundError:
            return {}
        assert isinstance(document, dict)
        return document


def _uptime_seconds() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


def _decision_file(layout: NodeLayout) -> Path:
    return layout.directory / "kquota" / "decision.json"


def _applied_file(layout: NodeLayout) -> Path:
    return layout.directory / "kquota-broker" / "applied.json"


def _plug_in(layout: NodeLayout, _node_id: int) -> Mapping[str, str]:
    for path in (_decision_file(layout), _applied_file(layout)):
        path.parent.mkdir(mode=0o755)
    return {
        "client.quota.callback.class": "org.kquota.KquotaCallback",
        "authorizer.class.name": "org.kquota.KquotaAuthorizer",
        "kquota.mode": "enforce",
        "kquota.decision.file": str(_decision_file(layout)),
        "kquota.applied.file": str(_applied_file(layout)),
        "kquota.topics.file": str(_decision_file(layout).with_name("topics.json")),
        "kquota.exempt.principals": "User:CN=kquota-agent,O=kquota",
    }
