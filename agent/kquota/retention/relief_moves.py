"""Options that move replicas off a full volume: nothing is lost, and the bytes stay in the cluster.

A copy needs room for the whole replica where it goes to, and its bytes leave this volume only once it is
complete and Kafka has deleted what it was copied from.
Source: docs/adr/0029-replica-moves.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kquota.disks.segments import PartitionOnDisk, PartitionState
from kquota.retention.expiry import departures
from kquota.retention.relief import Elsewhere, Option, Situation, Step, StepKind, played

LOG_DIRS = "log_dirs"
"""The setting of a move between log dirs: the key of a partition in Kafka's file of a reassignment."""
MOVES = (StepKind.LOGDIR_MOVE, StepKind.REPLICA_MOVE)
_ANY = "any"
_LEAST_SHARE = 100
"""A replica that frees less than this part of the mean of what moves have to free is as good as empty."""
MOST_MOVES = 100
"""No option moves more replicas than this."""

REPLICAS = "replicas"
"""The setting of a move between brokers."""
SETTINGS = {StepKind.LOGDIR_MOVE: LOG_DIRS, StepKind.REPLICA_MOVE: REPLICAS}
Place = str | int
"""A log dir of this broker, or another broker."""
Move = tuple[PartitionOnDisk, Place]
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


def brokers_text(brokers: Iterable[Place]) -> str:
    """Return brokers as a plan has them: ``1,2,3``."""
    return ",".join(map(str, brokers))


def brokers_of(text: str) -> list[int]:
    """Return the brokers of such a text.

    Raises:
        ValueError: it is none.
    """
    return [int(one) for one in text.split(",")]


def topics_of(names: Iterable[str]) -> list[str]:
    """Return the topics of partitions."""
    return sorted({place_of(name)[0] for name in names})


def reassignment(
    kind: StepKind, ends: Mapping[str, str], replicas: Mapping[str, Sequence[int]], broker_id: int
) -> dict[str, object]:
    """Return Kafka's file of a reassignment that moves this broker's replicas, and nothing else.

    ``ends`` are log dirs or brokers by partition. ``replicas`` are the brokers that each partition has now:
    those of a move between log dirs stay, in their order, each with its log dir.

    Raises:
        ValueError: the broker has no replica of a partition; the text is the partition's name.
    """
    found: list[dict[str, object]] = []
    for name, end in ends.items():
        topic, partition = place_of(name)
        one: dict[str, object] = {"topic": topic, "partition": partition}
        if kind is StepKind.REPLICA_MOVE:
            found.append(one | {REPLICAS: brokers_of(end)})
        else:
            brokers = list(replicas.get(name, ()))
            if broker_id not in brokers:
                raise ValueError(name)
            log_dirs = [end if broker == broker_id else _ANY for broker in brokers]
            found.append(one | {REPLICAS: brokers, LOG_DIRS: log_dirs})
    return {"version": 1, "partitions": found}


def replayed(situation: Situation, steps: Sequence[Step]) -> Option:
    """Play steps that were planned before on what is on the volume, and on the targets, now."""
    if not all(step.kind in MOVES for step in steps):
        return played(situation, steps)
    at = {name_of(one): one for one in _candidates(situation)}
    moves: dict[str, Move] = {}
    ways = {kind: _way(situation, kind) for kind in MOVES}
    rooms = {kind: dict(way.room_bytes) for kind, way in ways.items()}
    for step in steps:
        one, way, left = at.get(step.target), ways[step.kind], rooms[step.kind]
        places = [] if one is None else way.places(one)
        for place in places:
            if one is not None and way.ends(one, place) == (step.source, step.destination):
                if one.size_bytes <= left[place]:
                    left[place] -= one.size_bytes
                    moves[step.target] = one, place
                break
    by_ms = _done_ms(situation, moves.values())
    known = {name: _frees(situation, one, by_ms) for name, (one, _) in moves.items()}
    return _option(
        situation,
        [replace(step, frees_bytes=known.get(step.target, 0), by_ms=by_ms) for step in steps],
    )


def move(situation: Situation, kind: StepKind) -> Option | None:
    """Return the move of as few replicas as are enough, or else of all that find room; None for none."""
    way = _way(situation, kind)
    if situation.to_free_bytes <= 0 or not way.room_bytes:
        return None
    by_ms, moves = situation.now_ms, _chosen(situation, situation.now_ms, way)
    # The later they are done, the more has left by itself: what is chosen changes until its time fits.
    while (needed_ms := _done_ms(situation, moves)) > by_ms and moves:
        by_ms = needed_ms
        moves = _chosen(situation, by_ms, way)
    steps = []
    for one, place in moves:
        source, destination = way.ends(one, place)
        freed_bytes = _frees(situation, one, by_ms)
        step = Step(
            kind, name_of(one), freed_bytes, by_ms, SETTINGS[kind], source=source, destination=destination
        )
        steps.append(step)
    return _option(situation, steps) if steps else None


def moves(situation: Situation) -> Iterator[Option]:
    """Yield the move to other log dirs, and if that is not enough the one to other brokers."""
    found = move(situation, StepKind.LOGDIR_MOVE)
    if found is not None:
        yield found
    if found is None or not found.enough:
        found = move(situation, StepKind.REPLICA_MOVE)
        if found is not None:
            yield found


@dataclass(frozen=True, slots=True)
class _Way:
    """A kind of move: the room at each place, the places of a replica, and what it goes from and to then."""

    room_bytes: Mapping[Place, int]
    places: Callable[[PartitionOnDisk], Sequence[Place]]
    ends: Callable[[PartitionOnDisk, Place], tuple[str, str]]


def _way(situation: Situation, kind: StepKind) -> _Way:
    if kind is StepKind.LOGDIR_MOVE:
        rooms: dict[Place, int] = {target.log_dir: target.room_bytes for target in situation.targets}
        return _Way(rooms, lambda _one: list(rooms), lambda one, place: (one.log_dir, str(place)))
    elsewhere = situation.elsewhere
    if elsewhere is None:
        return _Way({}, lambda _one: [], lambda _one, _place: ("", ""))

    def ends(one: PartitionOnDisk, place: Place) -> tuple[str, str]:
        present = elsewhere.replicas[name_of(one)]
        others = [place if broker_id == elsewhere.broker_id else broker_id for broker_id in present]
        return brokers_text(present), brokers_text(others)

    room_bytes: dict[Place, int] = dict(elsewhere.room_bytes.items())
    return _Way(room_bytes, lambda one: _brokers_for(elsewhere, name_of(one)), ends)


def _brokers_for(elsewhere: Elsewhere, name: str) -> Sequence[Place]:
    """Return the brokers that may take over a replica: it is on as many racks as before, at least."""
    present = elsewhere.replicas.get(name, ())
    if elsewhere.broker_id not in present:
        return []
    racks = elsewhere.racks
    others = {racks.get(one) for one in present if one != elsewhere.broker_id}
    count = len({racks.get(one) for one in present})
    return [
        one for one in elsewhere.room_bytes if one not in present and len(others | {racks.get(one)}) >= count
    ]


def _chosen(situation: Situation, by_ms: int, way: _Way) -> list[Move]:
    """Choose the smallest replica that is enough, or else the largest that finds room, and go on from there.

    A replica goes to the one of its places that has the most room, the first one of several.
    """
    rooms = dict(way.room_bytes)
    missing_bytes = situation.to_free_bytes - situation.leaving_anyway(by_ms)
    least_bytes = max(1, missing_bytes // (MOST_MOVES * _LEAST_SHARE))
    frees = {one: _frees(situation, one, by_ms) for one in _candidates(situation)}
    left = {one: freed for one, freed in frees.items() if freed >= least_bytes}
    smallest_first = sorted(left, key=lambda one: one.size_bytes)
    largest_first = sorted(left, key=lambda one: -left[one])
    moves: list[Move] = []

    def first_that_fits(replicas: Iterable[PartitionOnDisk]) -> Move | None:
        for one in replicas:
            place = max(way.places(one), key=lambda name: rooms[name], default=None) if one in left else None
            if place is not None and rooms[place] >= one.size_bytes:
                return one, place
        return None

    while missing_bytes > 0 and len(moves) < MOST_MOVES:
        enough = (one for one in smallest_first if left.get(one, 0) >= missing_bytes)
        found = first_that_fits(enough) or first_that_fits(largest_first)
        if found is None:
            break
        one, place = found
        rooms[place] -= one.size_bytes
        missing_bytes -= left.pop(one)
        moves.append(found)
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
