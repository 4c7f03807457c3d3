"""`kquota relief` on a real broker: a volume over its hard limit, three topics, and a group that lags."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from kquota.policy.timestamps import parse_utc
from testbed.loopback.certificates import principal_of
from testbed.loopback.clients import admin_client, create_topic, offsets_by_partition
from testbed.loopback.plug_in import OPERATOR
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB, LoopVolume
from tests.integration.spine.agents import KQUOTA, AgentProcess
from tests.integration.spine.fleet import ORDERS_TOPIC, QUICK, Fleet, min_free
from tests.integration.waiting import eventually
from tests.unit.policy.golden import complaints

_BOSS = "boss"
DAY_MS = 86_400_000
CHECK_SECONDS, DELAY_SECONDS = 20, 1
SEGMENT_BYTES, SEGMENTS, RECORD_BYTES = MIB, 30, 64 * 1024
HARD_FREE_BYTES, SOFT_FREE_BYTES = 100 * MIB, 110 * MIB
DAYS: Mapping[str, int | None] = {"visits": 30, "orders": 7, "audit": None}
"""How long each topic keeps its records; their ages go up to six sevenths of that, or of a year."""


@pytest.fixture(scope="module")
def crowded(kafka_runtime: KafkaRuntime, callback_jar: Path) -> Iterator[Fleet]:
    """One broker whose volume has little room left, with the three topics."""
    limits = min_free(hard_bytes=HARD_FREE_BYTES, soft_bytes=SOFT_FREE_BYTES)
    properties = {
        "allow.everyone.if.no.acl.found": "true",
        "log.retention.check.interval.ms": str(CHECK_SECONDS * 1000),
        "log.initial.task.delay.ms": "1000",
    }
    with Fleet(
        kafka_runtime,
        callback_jar,
        {1: 1},
        settings=QUICK | {"limits": limits},
        properties=properties,
        super_users=[principal_of(_BOSS)],
    ) as fleet:
        fleet.agents[1].start()
        for topic, days in DAYS.items():
            keep_topic(fleet, topic, days)
        commit(fleet, "billing", "visits", 1)
        for topic in ("orders", "audit"):
            commit(fleet, "search", topic, offsets_by_partition(boss(fleet), topic)[0])
        fleet.await_enforced("OPEN")
        ends = {topic: offsets_by_partition(boss(fleet), topic)[0] for topic in DAYS}
        eventually(lambda: watermarks(fleet) == ends, "the watermarks are in the checkpoint")
        yield fleet


def boss(fleet: Fleet) -> AdminClient:
    return admin_client(fleet.cluster.client_configuration(_BOSS))


def keep_topic(fleet: Fleet, topic: str, days: int | None) -> None:
    """Create a topic, and fill it with records of all ages."""
    settings = {
        "segment.bytes": str(SEGMENT_BYTES),
        "retention.ms": "-1" if days is None else str(days * DAY_MS),
        "file.delete.delay.ms": str(DELAY_SECONDS * 1000),
    }
    create_topic(boss(fleet), topic, [[1]], settings)
    count = SEGMENTS * SEGMENT_BYTES // RECORD_BYTES
    oldest_ms = (days or 365) * DAY_MS * 6 // 7
    now_ms = round(time.time() * 1000)
    producer = Producer(fleet.cluster.client_configuration() | {"linger.ms": 0, "batch.size": RECORD_BYTES})
    for number in range(count):
        at_ms = now_ms - oldest_ms + oldest_ms * number // count
        producer.produce(topic, os.urandom(RECORD_BYTES), timestamp=at_ms)
        producer.poll(0)
    assert producer.flush(60) == 0


def watermarks(fleet: Fleet) -> dict[str, int]:
    """The high watermarks that the broker has noted, every five seconds: no segment above them may leave."""
    (log_dir,) = fleet.cluster.nodes[1].layout.log_dirs
    lines = (log_dir / "replication-offset-checkpoint").read_text("utf-8").split("\n")
    rows = [line.split() for line in lines if line.count(" ") == 2]
    return {topic: int(offset) for topic, _partition, offset in rows if topic in DAYS}


def commit(fleet: Fleet, group: str, topic: str, offset: int) -> None:
    """Let a consumer group have read a topic up to there."""
    consumer = Consumer(fleet.cluster.client_configuration() | {"group.id": group})
    place = TopicPartition(topic, 0, offset)
    consumer.assign([place])
    consumer.commit(offsets=[place], asynchronous=False)
    consumer.close()


def retentions(fleet: Fleet) -> dict[str, tuple[str, bool]]:
    """The retention of each topic, and whether it is the topic's own."""
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in DAYS]
    admin = boss(fleet)
    found = {one.name: future.result(30) for one, future in admin.describe_configs(resources).items()}
    return {
        topic: (one["retention.ms"].value, not one["retention.ms"].is_default) for topic, one in found.items()
    }


def relief(agent: AgentProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    return agent.cli("relief", *arguments, "--command-config", str(agent.operator))


def orders(agent: AgentProcess) -> list[Any]:
    status = json.loads(agent.cli("status", "--json").stdout)
    assert complaints("status", status) == []
    return list(status["orders"])


def deny_the_operator(fleet: Fleet, topic: str) -> None:
    """Let the operator read the topic's settings, but not change them."""
    rights = {
        (principal_of(OPERATOR), AclOperation.ALTER_CONFIGS): AclPermissionType.DENY,
        ("User:*", AclOperation.ALL): AclPermissionType.ALLOW,
    }
    bindings = [
        AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, who, "*", operation, permission)
        for (who, operation), permission in rights.items()
    ]
    admin = boss(fleet)
    for future in admin.create_acls(bindings).values():
        future.result(timeout=30)
    # A plan that is applied before the broker has heard of them would change something.
    given = AclBindingFilter(
        *(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, None, None),
        *(AclOperation.ANY, AclPermissionType.ANY),
    )
    eventually(
        lambda: len(admin.describe_acls(given).result(timeout=30)) == len(bindings), "the broker has the ACLs"
    )


def allow_everything(fleet: Fleet) -> None:
    everything = AclBindingFilter(
        *(ResourceType.ANY, None, ResourcePatternType.ANY, None, None),
        *(AclOperation.ANY, AclPermissionType.ANY),
    )
    admin = boss(fleet)
    for future in admin.delete_acls([everything]).values():
        future.result(timeout=30)


def apply_and_kill(agent: AgentProcess, plan: Path) -> float:
    """Apply a plan in a process that is killed once its step is taken; return when that was.

    While it runs, no other process may use this plan or another one of this broker.
    """
    process = subprocess.Popen(
        [
            *(*KQUOTA, "relief", "--apply", str(plan)),
            *("--config", str(agent.config), "--command-config", str(agent.operator)),
        ],
        env=agent.environment,
        stdout=subprocess.DEVNULL,
    )
    try:
        eventually(
            lambda: [s for s in json.loads(plan.read_text("utf-8"))["steps"] if s["state"] == "applied"],
            "its step is taken",
        )
        process.send_signal(signal.SIGSTOP)  # its bytes may leave at any moment, and then it would end
        begun, taken, other = time.monotonic(), plan.read_bytes(), plan.with_name("other.json")
        other.write_bytes(taken)
        for second in (("--undo", plan), ("--apply", other)):
            refused = relief(agent, *map(str, second))
            assert refused.returncode == 1
            assert f"process {process.pid} (" in refused.stderr
            assert f"relief --apply {plan}" in refused.stderr
            assert "is using a plan of broker 1: wait until it ends, or end it" in refused.stderr
        assert (plan.read_bytes(), other.read_bytes()) == (taken, taken)
        return begun
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def await_bytes(disk: LoopVolume, most_bytes: float) -> float:
    """Wait until no more than that is consumed; return when that was."""
    eventually(lambda: disk.consumed_bytes() < most_bytes, "the bytes leave", 120)
    return time.monotonic()


@pytest.mark.accepts("G15", "G16")
def test_a_full_volume_is_relieved_as_promised_interrupted_and_undone(crowded: Fleet, tmp_path: Path) -> None:
    agent, disk, plan = crowded.agents[1], crowded.disk(1), tmp_path / "plan.json"
    before = retentions(crowded)
    assert relief(agent).stdout == "no volume of this host is over its soft limit: there is nothing to free\n"
    disk.fill(leave_bytes=HARD_FREE_BYTES - MIB // 2)
    crowded.await_enforced("PAUSE")

    # It names the right topic: visits keeps the most of its time, but billing has not read it.
    ranked = json.loads(relief(agent, "--json").stdout)
    assert ranked["volume"] == disk.device
    assert ranked["to_free_bytes"] == pytest.approx(10.5 * MIB, abs=MIB // 2)
    first, second, third = ranked["options"]
    assert [(one["steps"][0]["target"], one["steps"][0]["unread_by"]) for one in (first, second, third)] == [
        ("orders", []),
        ("audit", []),
        ("visits", ["billing"]),
    ]
    assert first["enough"]
    assert first["frees_bytes"] == pytest.approx(ranked["to_free_bytes"], abs=2 * SEGMENT_BYTES)

    made = relief(agent, "--plan", str(plan), "--reason", "the disk is full", "--actor", "alice")
    assert made.returncode == 0, made.stderr
    assert complaints("relief", json.loads(plan.read_text("utf-8"))) == []
    checked = relief(agent, "--check", str(plan))
    assert (checked.returncode, checked.stderr) == (0, "")

    deny_the_operator(crowded, "orders")
    refused = eventually(
        lambda: (done := relief(agent, "--apply", str(plan))).returncode == 1 and done, "it is refused"
    )
    assert "nothing was changed: The cluster denied alter-configs on topic orders: give the" in refused.stderr
    assert (retentions(crowded), orders(agent)) == (before, [])
    allow_everything(crowded)
    eventually(
        lambda: relief(agent, "--check", str(plan)).returncode == 0, "the broker has heard of the permission"
    )

    # Killed half-way: the value is changed, and what it replaced is in the plan.
    consumed_bytes = disk.consumed_bytes()
    with ThreadPoolExecutor(1) as beside:
        left = beside.submit(await_bytes, disk, consumed_bytes - 0.8 * first["frees_bytes"])
        begun = apply_and_kill(agent, plan)
        document = json.loads(plan.read_text("utf-8"))
        assert document["state"] == "applying"
        assert document["restore"]["values"] == [
            {"target": "orders", "setting": "retention.ms", "value": str(7 * DAY_MS)}
        ]
        (order,) = orders(agent)
        assert (order["order"], order["action"]) == ("relief", document["id"])
        assert (order["actor"], order["reason"]) == ("alice", "the disk is full")

        # Run again, it goes on, and keeps its promise, whenever a busy machine reports that.
        applied = relief(agent, "--apply", str(plan))
        assert applied.returncode == 0, applied.stderr + applied.stdout
        crowded.await_enforced("OPEN")
        promised = parse_utc(document["steps"][0]["by"]) - parse_utc(document["created"])
        assert promised.total_seconds() == pytest.approx(CHECK_SECONDS + DELAY_SECONDS, abs=2)
        assert left.result() - begun <= 1.2 * promised.total_seconds()
    freed_bytes = consumed_bytes - disk.consumed_bytes()
    assert freed_bytes == pytest.approx(first["frees_bytes"], rel=0.2)
    assert {topic: one for topic, one in retentions(crowded).items() if one != before[topic]}.keys() == {
        "orders"
    }

    undone = relief(agent, "--undo", str(plan))
    assert undone.returncode == 0, undone.stderr
    eventually(lambda: retentions(crowded) == before, "the broker has heard of the former value")
    assert json.loads(plan.read_text("utf-8"))["state"] == "restored"
    assert orders(agent) == []
    keys = [message.key() for message in crowded.records(ORDERS_TOPIC)]
    assert keys == [f"relief/{document['id']}".encode()] * len(keys)
    assert "is restored" in relief(agent, "--apply", str(plan)).stderr
