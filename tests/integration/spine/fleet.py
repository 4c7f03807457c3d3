"""A cluster with the plug-in in every broker and an agent for each."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from confluent_kafka import Message, Producer

from kquota.guard.agent_state import AgentState, AgentStateFile, EverListed
from testbed.demo.load_process import LoadProcess
from testbed.loopback.clients import admin_client, create_topic, offsets_by_partition
from testbed.loopback.cluster import BOTH_ROLES, ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.plug_in import agent_name, loaded_plug_in, principals_of
from testbed.loopback.ports import PortReservation
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB, LoopVolume, VolumeSpec
from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.followed_topic import FollowedTopic
from tests.integration.waiting import eventually

USAGE_TOPIC = "__kquota_volume_usage"
HISTORY_TOPIC = "__kquota_history"
ORDERS_TOPIC = "__kquota_orders"
INODES = 16_384
DISK = VolumeSpec(1024 * MIB, inodes=INODES)  # sparse: it takes only the written space
SOFT_FREE_PERCENTAGE, HARD_FREE_PERCENTAGE = 50, 20
QUICK: Mapping[str, Any] = {
    "mode": "enforce",
    "limits": {
        "hard": {"type": "MinFreePercentage", "level": HARD_FREE_PERCENTAGE},
        "soft": {"type": "MinFreePercentage", "level": SOFT_FREE_PERCENTAGE},
    },
    "interval_seconds": 2,
    "staleness_seconds": 20,
    "hang_seconds": 3,
    "lease_seconds": 20,
    "join_grace_seconds": 5,
    "brokers_interval_seconds": 0.5,
    "history_interval_seconds": 2,
    "fill_floor_bytes_per_second": 20_000_000,  # more than any test fills in a minute, in one step
}
"""Settings for tests: agents report more often than usual, so that there is less to wait for."""
GONE_BROKERS = (77, 99)
"""Brokers that the agents remember as once listed: reports in their names count, and no agent answers."""
SOON_STALE_SECONDS = 10
"""For agents that are to miss a silent one soon: five reports of those that are well, on a busy machine."""


def min_free(*, hard_bytes: int, soft_bytes: int) -> dict[str, dict[str, object]]:
    """Limits of an agent.yml, by the bytes that have to be free on each volume."""
    levels = {"hard": hard_bytes, "soft": soft_bytes}
    return {name: {"type": "MinFreeBytes", "level": level} for name, level in levels.items()}


class Fleet:
    """Brokers, plug-ins and agents together; a context manager."""

    def __init__(
        self,
        runtime: KafkaRuntime,
        callback_jar: Path,
        volumes: Mapping[int, int],
        *,
        settings: Mapping[str, Any] = QUICK,
        exempt: Sequence[str] | None = None,
        properties: Mapping[str, str] | None = None,
        super_users: Sequence[str] | None = None,
        partitions: int = 1,
        controllers: Sequence[int] | None = None,
        dynamic_quorum: bool = False,
        metadata_disk: VolumeSpec | None = None,
    ) -> None:
        ids = sorted(volumes)
        if exempt is None:
            exempt = principals_of(ids)
        spec = ClusterSpec(
            nodes=tuple(
                NodeSpec(
                    node_id=i,
                    roles=BOTH_ROLES if controllers is None or i in controllers else ("broker",),
                    volumes=(DISK,) * volumes[i],
                    separate_metadata_dir=True,
                    metadata_volume=metadata_disk,
                )
                for i in ids
            ),
            node_properties=loaded_plug_in(exempt),
            class_path=(callback_jar,),
            authorizer=super_users is not None,
            super_users=tuple(super_users or ()),
            properties={"file.delete.delay.ms": "0", **(properties or {})},
            dynamic_quorum=dynamic_quorum,
        )
        self.cluster = KafkaCluster(spec, runtime)
        self.agents: dict[int, AgentProcess] = {}
        self.waits: list[tuple[str, float]] = []
        """Each state that was waited for, with the seconds until it was there."""
        self._followed: dict[tuple[str, str | None], FollowedTopic] = {}
        self._settings, self._partitions = settings, partitions
        self._ports = PortReservation()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.cluster)
            stack.enter_context(self._ports)
            for node in self.cluster.brokers:
                agent = AgentProcess(self.cluster, node.node_id, self._ports.reserve(), self._settings)
                stack.callback(agent.close)
                self.agents[node.node_id] = agent
                listed = EverListed(self.cluster.cluster_id, GONE_BROKERS)
                AgentStateFile(agent.state_dir / "state.json").save(AgentState(ever_listed=listed))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def disk(self, broker_id: int, number: int = 1) -> LoopVolume:
        """A volume of a broker."""
        return self.cluster.nodes[broker_id].volumes[number - 1]

    def fill(self, broker_id: int, headroom: float, number: int = 1) -> None:
        """Size a file on a broker's volume in one step so that this headroom is left."""
        volume = self.disk(broker_id, number)
        zone = SOFT_FREE_PERCENTAGE - HARD_FREE_PERCENTAGE
        free_ratio = (HARD_FREE_PERCENTAGE + headroom * zone) / 100
        capacity_bytes = volume.capacity_bytes()
        missing_bytes = round(capacity_bytes * (1 - free_ratio)) - volume.consumed_bytes()
        with (volume.mount_point / "ballast").open("ab") as ballast:
            size_bytes = os.fstat(ballast.fileno()).st_size
            if missing_bytes > 0:
                os.posix_fallocate(ballast.fileno(), size_bytes, missing_bytes)
            else:
                ballast.truncate(size_bytes + missing_bytes)

    def clear(self) -> None:
        """Take away every such file."""
        for node in self.cluster.brokers:
            for volume in node.volumes:
                (volume.mount_point / "ballast").unlink(missing_ok=True)

    def withdraw_orders(self) -> None:
        """Remove what operators ordered and what brokers reported that the cluster has not."""
        own = {str(broker_id).encode() for broker_id in self.agents}
        for topic in (USAGE_TOPIC, ORDERS_TOPIC):
            last = {message.key(): message.value() for message in self.records(topic)}
            for key, value in last.items():
                if key is not None and value is not None and key not in own:
                    self.put(key.decode(), None, topic)

    def of(self, ids: Iterable[int] | None = None) -> list[AgentProcess]:
        """Those agents; all of them by default."""
        return [self.agents[i] for i in (self.agents if ids is None else ids)]

    def await_decided(
        self, state: str, ids: Iterable[int] | None = None, timeout_seconds: float = 60
    ) -> None:
        """Wait until those agents have decided that."""
        agents, begun = self.of(ids), time.monotonic()
        eventually(
            lambda: all(agent.state == state for agent in agents), f"{agents} decide {state}", timeout_seconds
        )
        self.waits.append((state, time.monotonic() - begun))

    def await_enforced(
        self, state: str, ids: Iterable[int] | None = None, timeout_seconds: float = 60
    ) -> None:
        """Wait until the plug-ins of those brokers (default: all) hold producers at that state."""
        agents, begun = self.of(ids), time.monotonic()
        eventually(
            lambda: all(agent.state == agent.applied_state == state for agent in agents),
            f"{state} holds at {agents}",
            timeout_seconds,
        )
        self.waits.append((state, time.monotonic() - begun))

    def marks(self) -> dict[int, int]:
        """The end of each agent's journal."""
        return {agent.broker_id: agent.journal_mark() for agent in self.agents.values()}

    def put(self, key: str, value: Mapping[str, Any] | bytes | None, topic: str = USAGE_TOPIC) -> None:
        """Write a record to the usage topic or another one, as any client with the permission."""
        raw = json.dumps(value).encode() if isinstance(value, Mapping) else value
        failures: list[object] = []

        def delivered(error: object, _message: Message) -> None:
            failures.extend([error] if error is not None else [])

        producer = Producer({**self.cluster.client_configuration(agent_name(1)), "log_level": 0})
        producer.produce(topic, key=key, value=raw, on_delivery=delivered)
        assert producer.flush(60) == 0
        assert failures == []

    def records(self, topic: str = USAGE_TOPIC, *, name: str | None = agent_name(1)) -> list[Message]:
        """Every record of a topic of ours, to its end as of now; read as `name`, or as an application."""
        if (topic, name) not in self._followed:
            configuration = self.cluster.client_configuration(name)
            partitions = self._partitions if topic == USAGE_TOPIC else 1
            self._followed[topic, name] = self._stack.enter_context(
                FollowedTopic(configuration, topic, partitions)
            )
        return self._followed[topic, name].records()

    def read_anew(self) -> None:
        """Have `records` forget what it has read: a topic is to be another one."""
        self._followed.clear()

    def usage_of(self, broker_id: int) -> list[tuple[int, dict[str, Any]]]:
        """The broker's usage records: time of arrival in ms, and content; without those of the tests."""
        key = str(broker_id).encode()
        found = [(m.timestamp()[1], m.value()) for m in self.records() if m.key() == key]
        return [(at, json.loads(value)) for at, value in found if value and b'"InstanceId"' in value]

    def produce(self, topic: str, rate_bytes_per_second: float) -> LoadProcess:
        """Start an application that produces, on the plain listener."""
        return LoadProcess(
            "produce",
            topic=topic,
            configuration=self.cluster.client_configuration(),
            log_path=self.cluster.path / f"producer-{topic}.log",
            environment=self.cluster.environment(),
            options=[
                *("--rate-bytes", str(rate_bytes_per_second), "--record-bytes", "1000"),
                *("-X", "enable.idempotence=true"),  # landed records can be counted exactly
                *("-X", "queue.buffering.max.kbytes=8192"),  # waiting records are soon sent
            ],
        )

    def create_topic(self, name: str) -> None:
        """Create an application's topic, a partition led by each broker."""
        ids = sorted(self.agents)
        replicas = [[*ids[i:], *ids[:i]] for i in range(len(ids))]
        create_topic(admin_client(self.cluster.client_configuration()), name, replicas)

    def landed_bytes(self, topic: str) -> int:
        """How many bytes of records of 1,000 bytes have landed in an application's topic."""
        admin = admin_client(self.cluster.client_configuration())
        return 1000 * sum(offsets_by_partition(admin, topic).values())
