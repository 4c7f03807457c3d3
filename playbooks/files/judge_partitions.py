"""Print what speaks against the restart of Kafka's nodes, a sentence a line; nothing if they may restart.

The plays run it on the host of Kafka's tools, with whatever Python that host has. Arguments: a question as
JSON, and the command that describes all topics (`kafka-topics.sh --describe`). The question has:

- phase: `before` (may these nodes restart together now?), `after` (are they back?), or `placement` (would
  each of these batches be allowed if every replica were in sync?);
- batches: lists of node ids, one of them in the first two phases;
- ill: topics, or partitions as TOPIC-NUMBER, that do not count.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

MOST = 10
_TOPIC = re.compile(r"Topic: (\S+)\s.*\bConfigs:(.*)")
_MIN = re.compile(r"(?:^|[,\s])min\.insync\.replicas=(\d+)")
_PARTITION = re.compile(
    r"\s+Topic: (\S+)\s+Partition: (\d+)\s+Leader: (\S+)\s+Replicas: ([\d,]*)\s+Isr: ([\d,]*)"
)
_ADDING = re.compile(r"Adding Replicas: ([\d,]+)")


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


def main() -> int:
    """Run the command; returns its exit code."""
    with subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, text=True) as tool:
        assert tool.stdout is not None
        count = 0
        for sentence in judge(tool.stdout, json.loads(sys.argv[1])):
            count += 1
            if count <= MOST:
                print(sentence)
    if count > MOST:
        print(f"and {count - MOST} more")
    return tool.returncode


if __name__ == "__main__":
    sys.exit(main())
