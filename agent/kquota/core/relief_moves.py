"""Options that move replicas off a full volume: nothing is lost, and the bytes stay in the cluster.

A copy needs room for the whole replica where it goes to, and its bytes leave this volume only once it is
complete and Kafka has deleted what it was copied from.
Source: docs/adr/0202-relief-moves-replicas-through-kafkas-own-tool.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from kquota.core.expiry import departures
from kquota.core.relief import PATIENCE_MS, Option, Situation, Step, StepKind, options, played
from kquota.core.segments import PartitionOnDisk, PartitionState

LOG_DIRS = "log_dirs"
"""The setting of a move between log dirs: the key of a partition in Kafka's file of a reassignment."""
MOVES = (StepKind.LOGDIR_MOVE, StepKind.REPLICA_MOVE)
_ANY = "any"
MOST_MOVES = 100
"""No option moves more replicas than this."""

Move = tuple[PartitionOnDisk, str]
"""A replica, and the place that it goes to."""


def name_of(partition: PartitionOnDisk) -> str:
    """Return a partition's name as Kafka's tools have it: ``visits-3``."""
    return f"{partition.topic}-{partition.partition}"


def place_of(name: str) -> tuple[str, int]:
    """Return topic and partition of such a name.

    Raises:
        ValueError: it is none.
    """
    topic, dash, number = name.rpartition("-")
    if not topic or not dash or not (number.isascii() and number.isdigit()):
        raise ValueError(name)
    return topic, int(number)


def reassignment(
    moves: Mapping[str, str], replicas: Mapping[str, Sequence[int]], broker_id: int
) -> dict[str, object]:
    """Return Kafka's file of a reassignment that moves this broker's replicas to log dirs, and nothing else.

    ``replicas`` are the brokers of each partition: they stay, in their order, each with its log dir.

    Raises:
        ValueError: the broker has no replica of a partition; the text is the partition's name.
    """
    found = []
    for name, log_dir in moves.items():
        topic, partition = place_of(name)
        brokers = list(replicas.get(name, ()))
        if broker_id not in brokers:
            raise ValueError(name)
        log_dirs = [log_dir if one == broker_id else _ANY for one in brokers]
        found.append({"topic": topic, "partition": partition, "replicas": brokers, LOG_DIRS: log_dirs})
    return {"version": 1, "partitions": found}


def ranked(situation: Situation, patience_ms: int = PATIENCE_MS) -> list[Option]:
    """Return all options, moves among them, the best first; empty if no bytes are missing."""
    return sorted([*options(situation, patience_ms), *_moves(situation)], key=lambda one: one.rank)


def replayed(situation: Situation, steps: Sequence[Step]) -> Option:
    """Play steps that were planned before on what is on the volume, and on the targets, now."""
    if not all(step.kind in MOVES for step in steps):
        return played(situation, steps)
    rooms = {target.log_dir: target.room_bytes for target in situation.targets}
    at = {(name_of(one), one.log_dir): one for one in _candidates(situation)}
    moves: dict[str, Move] = {}
    for step in steps:
        one = at.get((step.target, step.source or ""))
        destination = step.destination or ""
        if one is not None and one.size_bytes <= rooms.get(destination, -1):
            rooms[destination] -= one.size_bytes
            moves[step.target] = one, destination
    by_ms = _done_ms(situation, moves.values())
    known = {name: _frees(situation, one, by_ms) for name, (one, _) in moves.items()}
    return _option(
        situation,
        [
            Step(
                *(step.kind, step.target, known.get(step.target, 0), by_ms, step.setting),
                source=step.source,
                destination=step.destination,
            )
            for step in steps
        ],
    )


def _moves(situation: Situation) -> Iterator[Option]:
    """Yield the move of as few replicas as are enough, or else of all that find room."""
    targets = {target.log_dir: target.room_bytes for target in situation.targets}
    if situation.to_free_bytes <= 0 or not targets:
        return
    by_ms, moves = situation.now_ms, _chosen(situation, situation.now_ms, targets, lambda _one: targets)
    # The later they are done, the more has left by itself: what is chosen changes until its time fits.
    while (needed_ms := _done_ms(situation, moves)) > by_ms and moves:
        by_ms = needed_ms
        moves = _chosen(situation, by_ms, targets, lambda _one: targets)
    if moves:
        yield _option(
            situation,
            [
                Step(
                    *(StepKind.LOGDIR_MOVE, name_of(one), _frees(situation, one, by_ms), by_ms, LOG_DIRS),
                    source=one.log_dir,
                    destination=destination,
                )
                for one, destination in moves
            ],
        )


def _chosen(
    situation: Situation,
    by_ms: int,
    room_bytes: Mapping[str, int],
    places: Callable[[PartitionOnDisk], Iterable[str]],
) -> list[Move]:
    """Choose the smallest replica that is enough, or else the largest that finds room, and go on from there.

    A replica goes to the one of its places that has the most room, the first one of several.
    """
    rooms = dict(room_bytes)
    left = {one: freed for one in _candidates(situation) if (freed := _frees(situation, one, by_ms)) > 0}
    missing_bytes = situation.to_free_bytes - situation.leaving_anyway(by_ms)
    moves: list[Move] = []
    while missing_bytes > 0 and len(moves) < MOST_MOVES:
        fitting = [
            (one, freed, place)
            for one, freed in left.items()
            if (place := max(places(one), key=lambda name: rooms[name], default=None)) is not None
            and rooms[place] >= one.size_bytes
        ]
        if not fitting:
            break
        enough = [found for found in fitting if found[1] >= missing_bytes]
        one, freed, place = (
            min(enough, key=lambda found: found[0].size_bytes)
            if enough
            else max(fitting, key=lambda found: found[1])
        )
        rooms[place] -= one.size_bytes
        missing_bytes -= freed
        del left[one]
        moves.append((one, place))
    return moves


def _candidates(situation: Situation) -> list[PartitionOnDisk]:
    """Return the replicas that may be moved, by name: none that is being moved already."""
    found = [one for of_topic in situation.topics.values() for one in of_topic]
    busy = {name_of(one) for one in found if one.state is PartitionState.FUTURE}.union(situation.busy)
    return sorted(
        (
            one
            for one in found
            if one.state is PartitionState.LOG and situation.may_move(one.topic) and name_of(one) not in busy
        ),
        key=lambda one: (one.topic, one.partition),
    )


def _frees(situation: Situation, one: PartitionOnDisk, by_ms: int) -> int:
    """Return what leaves with a replica, less what leaves it by then anyway."""
    leaving = departures(one, situation.rules[one.topic], situation.broker, situation.now_ms).leaving
    return one.size_bytes - sum(found.size_bytes for found in leaving if found.at_ms <= by_ms)


def _done_ms(situation: Situation, moves: Iterable[Move]) -> int:
    """Return when all these replicas are copied, and what they were copied from is deleted."""
    replicas = [one for one, _ in moves]
    copy_ms = -(-sum(one.size_bytes for one in replicas) * 1000 // situation.copy_bytes_per_second)
    return situation.now_ms + copy_ms + situation.broker.removal_delay_ms


def _option(situation: Situation, steps: Sequence[Step]) -> Option:
    freed_bytes = sum(step.frees_bytes for step in steps)
    freed_bytes += situation.leaving_anyway(max(step.by_ms for step in steps))
    return Option(tuple(steps), freed_bytes >= situation.to_free_bytes)
