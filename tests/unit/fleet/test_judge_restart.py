"""The objections to a restart of nodes, by what Kafka's tools print of topics and controllers."""

from __future__ import annotations

import importlib.util
import json
import sys
from contextlib import ExitStack
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.repository.tree import REPOSITORY


def load() -> ModuleType:
    file = REPOSITORY / "playbooks/files/judge_restart.py"
    specification = importlib.util.spec_from_file_location("judge_restart", file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["judge_restart"] = module
    specification.loader.exec_module(module)
    return module


JUDGE = load()


def described(
    replicas: list[int],
    in_sync: list[int],
    *,
    least: int = 1,
    leader: str = "",
    adding: str = "",
    topic: str = "orders",
) -> list[str]:
    """The lines of Kafka 4.4 for a topic with one partition, numbered 3."""
    configs = (
        f"cleanup.policy=compact,delete,min.insync.replicas={least}" if least > 1 else "segment.bytes=1048576"
    )
    nodes, sync = (",".join(map(str, ids)) for ids in (replicas, in_sync))
    led = leader or (str(in_sync[0]) if in_sync else "none")
    found = f"\tTopic: {topic}\tPartition: 3\tLeader: {led}\tReplicas: {nodes}\tIsr: {sync}{adding}"
    return [
        f"Topic: {topic}\tTopicId: qb2NfhLh\tPartitionCount: 4\tReplicationFactor: 3\tConfigs: {configs}\n",
        f"{found}\tElr: \tLastKnownElr: \n",
    ]


def judged(lines: list[str], phase: str, *batches: list[int], ill: list[str] | None = None) -> list[str]:
    question = {"phase": phase, "batches": list(batches), "ill": ill or []}
    return list(JUDGE.judge(lines, question))


@pytest.mark.parametrize(
    ("lines", "sentences"),
    [
        (described([1, 2, 3], [1, 2, 3], least=2), []),
        # At the minimum, and this node is needed.
        (
            described([1, 2, 3], [1, 2], least=2),
            ["orders-3 would have 1 in-sync replicas without 1, and needs 2"],
        ),
        (described([1, 2, 3], [1, 2]), []),
        (described([1, 2], [1]), ["orders-3 would have 0 in-sync replicas without 1, and needs 1"]),
        # It is out of sync itself, or has nothing of it.
        (described([1, 2, 3], [2, 3], least=2), []),
        (described([2, 3, 4], [2], least=2), []),
        (described([2, 3], [], leader="none"), []),
        (described([1, 2], [1], leader="none"), ["orders-3 has no leader"]),
        # It can never have more.
        (described([1], [1]), []),
        (described([1, 2], [1, 2], least=2), []),
        # A reassignment of hours stops nothing.
        (described([1, 2, 3, 4], [1, 2, 3], least=3, adding="\tAdding Replicas: 4"), []),
    ],
)
def test_a_node_restarts_if_no_partition_that_it_holds_falls_below_its_minimum(
    lines: list[str], sentences: list[str]
) -> None:
    assert judged(lines, "before", [1]) == sentences


def test_partitions_known_to_be_ill_do_not_count() -> None:
    lines = [*described([1, 2], [1]), *described([1, 2], [1], topic="audit")]
    assert len(judged(lines, "before", [1])) == 2
    assert judged(lines, "before", [1], ill=["orders-3", "audit"]) == []
    assert len(judged(lines, "before", [1], ill=["orders-1", "audit-2"])) == 2


def test_nodes_are_back_when_every_partition_that_they_hold_is_in_sync() -> None:
    lines = described([1, 2, 3], [2, 3])
    assert judged(lines, "after", [1]) == ["the replica of orders-3 on node 1 is not in sync"]
    assert judged(lines, "after", [2]) == []
    assert judged(described([1, 2, 3], [1, 2], adding="\tAdding Replicas: 3"), "after", [3]) == []
    assert judged(described([1], [1], leader="none"), "after", [1]) == ["orders-3 has no leader"]


def test_a_batch_whose_nodes_share_a_partition_is_refused_unless_enough_replicas_remain() -> None:
    lines = described([1, 2, 3], [1, 2, 3], least=2)
    shared = "orders-3 would have 1 in-sync replicas without 1, 2, and needs 2"
    assert judged(lines, "placement", [1, 2], [3, 4]) == [shared]
    assert judged(lines, "before", [1, 2]) == [shared]
    assert judged(described([1, 2, 3], [1, 2, 3]), "placement", [1, 2]) == []
    # The placement is judged, not what is in sync now; a node alone is always allowed.
    assert judged(described([1, 2, 3], [3]), "placement", [1, 2]) == []
    assert judged(described([1], [], leader="none"), "placement", [1]) == []


@given(
    replicas=st.sets(st.integers(1, 6), min_size=1, max_size=4),
    out=st.sets(st.integers(1, 6)),
    batch=st.sets(st.integers(1, 6), min_size=1),
    least=st.integers(1, 3),
)
def test_after_an_allowed_restart_a_healthy_partition_has_its_minimum_unless_one_node_alone_takes_it(
    replicas: set[int], out: set[int], batch: set[int], least: int
) -> None:
    in_sync = sorted(replicas - out)
    lines = described(sorted(replicas), in_sync, least=least)
    allowed = judged(lines, "before", sorted(batch)) == []
    left, going = set(in_sync) - batch, set(in_sync) & batch
    if allowed and going:
        assert len(left) >= least or (len(going) == 1 and set(in_sync) == replicas)
    if not going and in_sync:
        assert allowed


QUORUM = (
    "NodeId\tDirectoryId          \tLogEndOffset\tLag\tLastFetchTimestamp\tLastCaughtUpTimestamp\tStatus  \t"
)


def quorum(caught_up_ms: dict[int, int], observer: int | None = None) -> list[str]:
    """The lines of Kafka 4.4 for voters by when they have caught up; the first one leads."""
    rows = [
        f"{voter}  \tk3Z9r8w1QnKp7Q  \t6089  \t0  \t{at}  \t{at}  \t{'Follower' if number else 'Leader'}  \t"
        for number, (voter, at) in enumerate(caught_up_ms.items())
    ]
    if observer is not None:
        rows.append(f"{observer}     \tAAAAAAAAAAAAAAA  \t6089   \t0  \t1     \t1        \tObserver\t")
    return [QUORUM, *rows]


NOW = 1_763_000_000_000
FOLLOWING = {1: NOW, 2: NOW - 400, 3: NOW - 10_000}
LOST = {1: NOW, 2: NOW - 400, 3: NOW - 10_001}


@pytest.mark.parametrize(
    ("voters", "phase", "node", "sentences"),
    [
        (FOLLOWING, "before", 1, []),
        (FOLLOWING, "after", 3, []),
        # Without it, two of three would not follow.
        (LOST, "before", 1, ["controller 3 does not follow, and without 1 there is no majority"]),
        (LOST, "before", 3, []),
        (LOST, "after", 3, ["controller 3 does not follow yet"]),
        (LOST, "after", 2, ["controller 3 does not follow, and without 2 there is no majority"]),
        # Of five, one more may be away; a single one is always the majority.
        ({**LOST, 4: NOW, 5: NOW}, "before", 1, []),
        ({1: NOW}, "before", 1, []),
        ({1: NOW}, "after", 1, []),
        # A node that the quorum does not list is not back.
        (FOLLOWING, "after", 4, ["controller 4 does not follow yet"]),
        ({}, "before", 1, ["the controllers are not known"]),
    ],
)
def test_a_controller_restarts_if_the_others_that_follow_are_a_majority(
    voters: dict[int, int], phase: str, node: int, sentences: list[str]
) -> None:
    assert list(JUDGE.judge_quorum(quorum(voters, observer=9), phase, node)) == sentences


class Printed(ExitStack):
    """A tool that has printed its argument."""

    returncode = 0

    def __init__(self, command: list[str], **_: object) -> None:
        super().__init__()
        self.stdout = command[0].splitlines(keepends=True)


def test_the_controllers_are_named_before_many_partitions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = "".join(
        line for number in range(12) for line in described([1, 2], [1], least=1, topic=f"t{number}")
    )
    voters = "".join(
        f"{node} AAAA 100 0 1 {at_ms} Follower\n" for node, at_ms in ((1, 90_000), (2, 90_000), (3, 1))
    )
    question = {
        "phase": "before",
        "batches": [["1"]],
        "ill": [],
        "topics": [topics],
        "quorum": [voters],
    }
    monkeypatch.setattr(JUDGE.subprocess, "Popen", Printed)
    monkeypatch.setattr(sys, "argv", ["judge_restart.py", json.dumps(question)])
    assert JUDGE.main() == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert first == "controller 3 does not follow, and without 1 there is no majority"
    assert others[-1] == "and 3 more"
