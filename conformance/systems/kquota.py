"""kquota: a plug-in and a fence in each broker, and an agent next to each; by commands and files alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import yaml

from conformance.loopback import LoopbackSystem
from conformance.system import Limits
from testbed.loopback.certificates import principal_of
from testbed.loopback.cluster import KafkaCluster
from testbed.loopback.node import NodeLayout, node_name
from testbed.loopback.processes import ChildProcess

_REPOSITORY = Path(__file__).resolve().parents[2]
_COMMAND = (sys.executable, "-m", "kquota")
_READY_SECONDS = 60.0
_LOOK_SECONDS = 0.2
BROKER_IDS = (1, 2, 3)


class NotReady(Exception):
    """An agent ended, or a plug-in did not report in time."""


class Tried(LoopbackSystem):
    """Agents and plug-ins at their defaults, but for the limits and the scope."""

    name: ClassVar[str] = "kquota"
    description: ClassVar[str] = (
        "kquota, enforcing, with the fence and `scope: volume`: a full volume holds the producers of topics "
        "on it. All else is at its defaults. It slows producers from the soft limit on."
    )
    remarks: ClassVar[Mapping[str, str]] = {
        "time to resume": (
            "A refused producer waits up to a second (its own retry.backoff.max.ms) before it tries again, "
            "and agents and plug-ins need some tenths to report the space. A system that never held its "
            "producers has nothing to resume."
        ),
    }
    scope: ClassVar[str] = "volume"

    def versions(self) -> tuple[str, ...]:
        """Return what the command says."""
        done = subprocess.run([*_COMMAND, "--version"], check=True, capture_output=True, text=True)
        return (done.stdout.strip(),)

    def class_path(self) -> tuple[Path, ...]:
        """Return the plug-in that was built here, or the one that LOOPBACK_KAFKA_CALLBACK_JAR names."""
        if configured := os.environ.get("LOOPBACK_KAFKA_CALLBACK_JAR"):
            return (Path(configured),)
        (version,) = self.versions()
        return (_REPOSITORY / "callback" / "target" / f"kquota-callback-{version.split()[-1]}.jar",)

    def properties(self, limits: Limits, bootstrap_servers: str) -> Mapping[str, str]:
        """Return the plug-in's properties, with the fence in a cluster without an authorizer."""
        names = [name for broker_id in BROKER_IDS for name in (_agent(broker_id), node_name(broker_id))]
        return {
            "client.quota.callback.class": "org.kquota.KquotaCallback",
            "authorizer.class.name": "org.kquota.KquotaAuthorizer",
            "kquota.fence.authorizer.class": "none",
            "kquota.mode": "enforce",
            "kquota.exempt.principals": ";".join(map(principal_of, names)),
        }

    def node_properties(self, layout: NodeLayout, broker_id: int) -> Mapping[str, str]:
        """Return the files between plug-in and agent, in directories of their writers."""
        for path in (_decision(layout), _applied(layout)):
            path.parent.mkdir(mode=0o755)
        return {
            "kquota.decision.file": str(_decision(layout)),
            "kquota.applied.file": str(_applied(layout)),
        }

    def start_beside(self, cluster: KafkaCluster, limits: Limits) -> list[ChildProcess]:
        """Start the agent of each broker."""
        return [self._start_agent(cluster, node.layout, node.node_id, limits) for node in cluster.brokers]

    def wait_until_ready(self, cluster: KafkaCluster) -> None:
        """Wait until each plug-in enforces OPEN.

        Raises:
            NotReady: one did not in time.
        """
        deadline = time.monotonic() + _READY_SECONDS
        waiting = [node.layout for node in cluster.brokers]
        while waiting := [layout for layout in waiting if not _enforces_open(layout)]:
            if time.monotonic() > deadline:
                raise NotReady(f"{waiting[0].directory.name}: the plug-in does not enforce OPEN")
            time.sleep(_LOOK_SECONDS)

    def _start_agent(
        self, cluster: KafkaCluster, layout: NodeLayout, broker_id: int, limits: Limits
    ) -> ChildProcess:
        state_dir = layout.directory / "kquota-state"
        state_dir.mkdir()
        configuration = layout.directory / "agent.yml"
        document = {
            "broker": {"server_properties": str(layout.server_properties)},
            "kafka": cluster.client_configuration(_agent(broker_id)),
            "limits": {
                "hard": {"type": "MinFreeBytes", "level": limits.hard_left_bytes},
                "soft": {"type": "MinFreeBytes", "level": limits.soft_left_bytes},
            },
            "scope": self.scope,
            "mode": "enforce",
            "decision_file": str(_decision(layout)),
            "applied_file": str(_applied(layout)),
            "state_dir": str(state_dir),
            "metrics": {"listen": "127.0.0.1:0"},
        }
        configuration.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
        return ChildProcess(
            [*_COMMAND, "run", "--config", str(configuration)],
            log_path=layout.directory / "agent.log",
            environment=cluster.environment(),
        )


def _agent(broker_id: int) -> str:
    return f"kquota-agent-{broker_id}"


def _decision(layout: NodeLayout) -> Path:
    return layout.directory / "kquota" / "decision.json"


def _applied(layout: NodeLayout) -> Path:
    return layout.directory / "kquota-broker" / "applied.json"


def _enforces_open(layout: NodeLayout) -> bool:
    try:
        applied = json.loads(_applied(layout).read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return False
    return bool(applied["mode"] == "enforce" and applied["state"] == "OPEN")
