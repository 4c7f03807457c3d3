"""Print what speaks against the restart of Kafka's nodes, a sentence a line; nothing if they may restart.

The plays run it on the host of Kafka's tools, with whatever Python that host has. Its argument is a question
as JSON:

- phase: `before` (may these nodes restart together now?), `after` (are they back?), or `placement` (would
  each of these batches be allowed if every replica were in sync?);
- batches: lists of node ids, one of them in the first two phases;
- ill: topics, or partitions as TOPIC-NUMBER, that do not count;
- topics: the command that describes all topics (`kafka-topics.sh --describe`);
- quorum: for a node that votes, the command that describes the controllers (`kafka-metadata-quorum.sh
  describe --replication`), else empty. Such a node is alone in its batch. Both tools run at the same time.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

MOST = 10
_TOPIC = re.compile(r"Topic: (\S+)\s.*\bConfigs:(.*)")
_MIN = re.compile(r"(?:^|[,\s])min\.insync\.replicas=(\d+)")
_PARTITION = re.compile(
    r"\s+Topic: (\S+)\s+Partition: (\d+)\s+Leader: (\S+)\s+Replicas: ([\d,]*)\s+Isr: ([\d,]*)"
)
_ADDING = re.compile(r"Adding Replicas: ([\d,]+)")
# NodeId DirectoryId LogEndOffset Lag LastFetchTimestamp LastCaughtUpTimestamp Status; times in ms.
_VOTER = re.compile(r"(\d+)\s+\S+\s+\d+\s+\d+\s+-?\d+\s+(-?\d+)\s+(?:Leader|Follower)\s*$")
# A voter follows if it caught up at most this long before the newest time in the list.
_FOLLOWS_MS = 10_000


class Partition(NamedTuple):
    """A partition as Kafka's tool describes it."""

    topic: str
    number: str
    has_leader: bool
    replicas: frozenset[int]
    """Without those that a reassignment adds, which are not in sync for as long as it takes."""
    in_sync: frozenset[int]
    min_in_sync: int

    @property
    def name(self) -> str:
        """As the client libraries write it."""
        return f"{self.topic}-{self.number}"


def read(lines: Iterable[str]) -> Iterator[Partition]:
    """The partitions of a description of topics."""
    least = 1
    for line in lines:
        if found := _TOPIC.match(line):
            configured = _MIN.search(found[2])
            least = int(configured[1]) if configured else 1
        elif found := _PARTITION.match(line):
            adding = _ADDING.search(line)
            replicas = _ids(found[4]) - (_ids(adding[1]) if adding else frozenset())
            has_leader = found[3] not in ("none", "-1")
            yield Partition(found[1], found[2], has_leader, replicas, _ids(found[5]), least)


def _ids(text: str) -> frozenset[int]:
    return frozenset(int(part) for part in text.split(",") if part)


def problems(partition: Partition, phase: str, nodes: frozenset[int]) -> Iterator[str]:
    """Yield each objection of this partition; none if these nodes do not hold it."""
    if not partition.replicas & nodes:
        return
    if phase != "placement" and not partition.has_leader:
        yield f"{partition.name} has no leader"
    elif phase == "after":
        for node in sorted((partition.replicas & nodes) - partition.in_sync):
            yield f"the replica of {partition.name} on node {node} is not in sync"
    else:
        present = partition.replicas if phase == "placement" else partition.in_sync
        going, left = present & nodes, len(present - nodes)
        # A partition with too few replicas for its minimum is not better off at another time.
        avoidable = len(going) > 1 or not partition.in_sync >= partition.replicas
        if going and left < partition.min_in_sync and (phase == "before" or len(going) > 1) and avoidable:
            names = ", ".join(map(str, sorted(going)))
            least = partition.min_in_sync
            yield f"{partition.name} would have {left} in-sync replicas without {names}, and needs {least}"


def judge(lines: Iterable[str], question: dict[str, Any]) -> Iterator[str]:
    """All sentences."""
    ill = set(question["ill"])
    batches = [frozenset(map(int, batch)) for batch in question["batches"]]
    for partition in read(lines):
        if partition.topic not in ill and partition.name not in ill:
            for nodes in batches:
                yield from problems(partition, question["phase"], nodes)


def judge_quorum(lines: Iterable[str], phase: str, node: int) -> Iterator[str]:
    """Yield what speaks against the restart of a controller: without it no majority would follow."""
    caught_up_ms = {int(found[1]): int(found[2]) for line in lines if (found := _VOTER.match(line.lstrip()))}
    if not caught_up_ms:
        yield "the controllers are not known"
        return
    newest_ms = max(caught_up_ms.values())
    lost = {voter for voter, at_ms in caught_up_ms.items() if at_ms < newest_ms - _FOLLOWS_MS}
    others = caught_up_ms.keys() - lost - {node}
    if phase == "after" and node in lost | ({node} - caught_up_ms.keys()):
        yield f"controller {node} does not follow yet"
    elif lost and len(others) < len(caught_up_ms) // 2 + 1:
        names = ", ".join(map(str, sorted(lost)))
        yield f"controller {names} does not follow, and without {node} there is no majority"


def main() -> int:
    """Run the tools; returns the exit code of the first one that failed, or 0."""
    question = json.loads(sys.argv[1])
    node = question["batches"][0][0]
    with ExitStack() as stack:
        tools = [
            stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            for command in (question["topics"], question["quorum"])
            if command
        ]
        topics, *quorum = (tool.stdout or () for tool in tools)
        sentences = list(judge(topics, question))
        for lines in quorum:
            # First, because a dead node of many partitions has more than are printed.
            sentences[:0] = judge_quorum(lines, question["phase"], int(node))
    print("".join(f"{one}\n" for one in sentences[:MOST]), end="")
    if len(sentences) > MOST:
        print(f"and {len(sentences) - MOST} more")
    return next((tool.returncode for tool in tools if tool.returncode), 0)


if __name__ == "__main__":
    sys.exit(main())
