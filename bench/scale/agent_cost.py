"""One agent, as a process of its own, facing the reports of a large cluster on a real topic."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.harness.processor import processor_seconds
from bench.scale.figures import AgentCost
from bench.scale.reports import NAMING_BROKERS, USUAL_FREE_RATIO, Reporters, signatures, unsigned
from kquota.kafka.topics import partitions_for, usage_topic
from kquota.policy.decision import Scope
from kquota.policy.limits import Limit, LimitPair, LimitType
from testbed.demo.loopback_stage import start_agent
from testbed.loopback.clients import admin_client, create_topic
from testbed.loopback.cluster import ClusterSpec, KafkaCluster
from testbed.loopback.plug_in import agent_name, broker_files
from testbed.loopback.runtime import KafkaRuntime

_BROKER_ID = 1
_FIRST_ID = 2
_LEADERS = 4  # of the partitions; a cluster of this size has one for each, which this machine can't run
_BREACHES = 15
_LIMITS = LimitPair(soft=Limit.of(LimitType.MIN_FREE_BYTES, 2), hard=Limit.of(LimitType.MIN_FREE_BYTES, 1))
_SOCKET = re.compile(r"pid=(?P<pid>\d+).*")
_COUNTERS = re.compile(r"bytes_(?P<way>sent|received):(?P<bytes>\d+)")


class AgentFailed(RuntimeError):
    """The agent ended, or did not do what it should in time."""


def measure_agent(
    runtime: KafkaRuntime,
    brokers: int,
    volumes: int,
    *,
    interval_seconds: float,
    seconds: float = 60.0,
    scoped: bool = False,
    signed: bool = False,
    report: Callable[[str], None] = print,
) -> AgentCost:
    """Start a broker and an agent, report for all others, and measure the agent's cost.

    Scoped: the agent has the scope of the volume, and a few of the others name topics. Signed: all agents
    sign their reports, and the agent requires it.
    """
    topic = usage_topic()
    partitions = partitions_for(brokers)
    with KafkaCluster(ClusterSpec.of(_LEADERS), runtime, report=report) as cluster:
        configuration = cluster.client_configuration(agent_name(_BROKER_ID))
        create_topic(
            admin_client(configuration),
            topic.name,
            [[1 + number % _LEADERS] for number in range(partitions)],
            topic.settings,
        )
        ids = range(_FIRST_ID, _FIRST_ID + brokers)
        place = cluster.authority, cluster.cluster_id, topic.name, partitions
        sign = signatures(*place, ids) if signed else unsigned
        with Reporters(
            configuration, topic.name, ids, volumes, interval_seconds, scoped=scoped, sign=sign
        ) as reporters:
            time.sleep(2 * interval_seconds)  # a topic that has been in use
            agent = _Agent(cluster, Scope.VOLUME if scoped else Scope.CLUSTER, signed=signed)
            try:
                start_seconds = agent.wait("THROTTLE", 60.0)
                report(f"first decision after {start_seconds:.2f} s; settling")
                time.sleep(10.0)
                usage = agent.usage()
                time.sleep(seconds)
                after = agent.usage()
                elapsed = after.at - usage.at
                report(f"{(after.cpu_seconds - usage.cpu_seconds) / elapsed:.1%} of a core; now breaches")
                pauses = _breaches(agent, reporters, ids[:NAMING_BROKERS] if scoped else ids)
                decision_bytes = agent.decision_bytes()
            finally:
                agent.close()
        return AgentCost(
            brokers,
            volumes,
            partitions,
            interval_seconds,
            reporters.record_bytes,
            start_seconds,
            (after.cpu_seconds - usage.cpu_seconds) / elapsed,
            after.memory_bytes,
            (after.received_bytes - usage.received_bytes) / elapsed,
            (after.sent_bytes - usage.sent_bytes) / elapsed,
            statistics.median(pauses),
            max(pauses),
            scoped,
            decision_bytes,
            reporters.signature_bytes if signed else None,
        )


def _breaches(agent: _Agent, reporters: Reporters, ids: range) -> list[float]:
    """Let one broker after the other breach its hard limit and recover."""
    found = []
    for broker_id in list(ids)[:: len(ids) // _BREACHES][:_BREACHES]:
        reporters.change(broker_id, free_ratio=0.04)
        found.append(agent.wait("PAUSE", 20.0))
        reporters.change(broker_id, free_ratio=USUAL_FREE_RATIO)
        agent.wait("THROTTLE", 20.0)
        time.sleep(0.37)  # out of step with every schedule
    return found


@dataclass(frozen=True, slots=True)
class _Usage:
    at: float
    cpu_seconds: float
    memory_bytes: int
    received_bytes: int
    sent_bytes: int


class _Agent:
    def __init__(self, cluster: KafkaCluster, scope: Scope, *, signed: bool) -> None:
        signing = {"mode": "off"}
        if signed:
            own = cluster.authority.issue(f"signer-{_BROKER_ID}", uris=[f"kquota://*/agent/{_BROKER_ID}"])
            files = {"certificate_file": str(own.certificate), "key_file": str(own.key)}
            signing = {"mode": "required", **files}
        self._decision = broker_files(cluster.nodes[_BROKER_ID].layout).decision
        self._decision.parent.mkdir(mode=0o755)
        # The disk of the measuring program is no part of the measurement.
        self._child = start_agent(
            cluster, _BROKER_ID, _LIMITS, mode="observe", scope=scope.value, signing=signing
        )

    def wait(self, state: str, timeout_seconds: float) -> float:
        """Wait for a decision; the seconds since the call."""
        begun = time.monotonic()
        while self._state() != state:
            if time.monotonic() - begun > timeout_seconds or not self._child.running():
                raise AgentFailed(f"no {state} within {timeout_seconds:g} s:\n{self._child.log_tail()}")
            time.sleep(0.002)
        return time.monotonic() - begun

    def usage(self) -> _Usage:
        process = psutil.Process(self._child.pid)
        pids = [member.pid for member in (process, *process.children(recursive=True))]
        status = [Path(f"/proc/{pid}/status").read_text("utf-8") for pid in pids]
        memory_bytes = 1024 * sum(int(kib) for kib in re.findall(r"VmHWM:\s+(\d+) kB", "".join(status)))
        # TCP's counts on the open connections of those processes.
        table = subprocess.run(["ss", "-tinpHO"], check=True, capture_output=True, text=True).stdout
        totals = {"received": 0, "sent": 0}
        for line in table.splitlines():
            owner = _SOCKET.search(line)
            if owner is not None and int(owner["pid"]) in pids:
                for counter in _COUNTERS.finditer(line):
                    totals[counter["way"]] += int(counter["bytes"])
        used = processor_seconds(process.pid)
        return _Usage(time.monotonic(), used, memory_bytes, totals["received"], totals["sent"])

    def decision_bytes(self) -> int:
        """The size of its decision file."""
        return self._decision.stat().st_size

    def close(self) -> None:
        """End it."""
        self._child.terminate(20.0)

    def _state(self) -> str | None:
        try:
            return str(json.loads(self._decision.read_text("utf-8"))["state"])
        except FileNotFoundError:
            return None
