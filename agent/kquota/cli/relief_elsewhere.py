"""The other brokers, as places for replicas of a full volume: their room, and the moves to them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from kquota.cli.cluster_look import look_at_cluster
from kquota.cli.move_run import Replica
from kquota.cli.relief_look import ReliefLook, ReliefVolume
from kquota.cli.relief_mover import ToolOptions, local_dirs, topics_of
from kquota.core.broker_rooms import broker_rooms
from kquota.core.inflow import NO_THROTTLE
from kquota.core.relief import Elsewhere, StepKind
from kquota.core.relief_moves import brokers_of, brokers_reassignment, brokers_text, move, moves
from kquota.core.relief_plan import PlannedStep
from kquota.core.segments import PartitionState
from kquota.kafka.errors import KafkaFailure
from kquota.kafka.operator_admin import OperatorConnection, PartitionReplicas
from kquota.kafka.reassign_tool import ReassignTool, ToolFailed
from kquota.observe.replica_dirs import size_in
from kquota.settings import Settings

_READ_SECONDS = 10.0
_THROTTLES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


class BrokerRooms:
    """The room of brokers by what their agents report, as it changes; a context manager."""

    def __init__(self, settings: Settings) -> None:
        self._look = look_at_cluster(settings)
        self._staleness = timedelta(seconds=settings.staleness_seconds)
        self._is_known = False

    def __enter__(self) -> Self:
        self._look.__enter__()
        self._is_known = self._look.wait(_READ_SECONDS)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._look.close()

    def of(self, brokers: Collection[int] | None = None) -> dict[int, int] | None:
        """Return the room of these brokers, or all active ones; None while the reports are not known."""
        if not self._is_known:
            return None
        self._look.take(0.0)
        active = self._look.membership.active or frozenset[int]()
        wanted = active if brokers is None else active & set(brokers)
        return broker_rooms(self._look.view, wanted, datetime.now(UTC), self._staleness)


def with_others(
    looked: ReliefLook,
    settings: Settings,
    volume: ReliefVolume,
    connection: OperatorConnection,
    tool: ToolOptions,
    broker_id: int,
    *,
    always: bool,
) -> ReliefLook:
    """Add to a look what others move, and other brokers where log dirs are not enough, or `always`."""
    situation, notes = looked.situation, list(looked.notes)
    if not situation.to_free_bytes:
        return looked
    found = move(situation, StepKind.LOGDIR_MOVE)
    if always or found is None or not found.enough:
        elsewhere = _elsewhere(looked, settings, connection, broker_id)
        if isinstance(elsewhere, str):
            notes.append(f"no move to another broker is ranked: {elsewhere}")
        else:
            situation = replace(situation, elsewhere=elsewhere)
    if always or any(moves(situation)):  # Kafka's tool takes seconds
        try:
            moving = tool.tool(settings, volume).reassigned()
            situation = replace(situation, busy={*situation.busy, *moving})
        except ToolFailed as error:
            notes.append(f"it is not known which partitions are being reassigned: {error}")
    return replace(looked, situation=situation, notes=tuple(notes))


def _elsewhere(
    looked: ReliefLook, settings: Settings, connection: OperatorConnection, broker_id: int
) -> Elsewhere | str:
    situation = looked.situation
    racks = connection.racks().result()
    if isinstance(racks, KafkaFailure):
        return racks.sentence
    if len(racks) < 2:
        return Elsewhere(broker_id, {}, {}, racks)
    with BrokerRooms(settings) as rooms:
        room_bytes = rooms.of(racks.keys() - {broker_id})
    if room_bytes is None:
        return "the reports of other brokers can't be read"
    replicas = connection.replicas_of(topic for topic in situation.topics if situation.may_move(topic))
    if isinstance(replicas, KafkaFailure):
        return replicas.sentence
    in_sync = {name: one.brokers for name, one in replicas.items() if one.in_sync}
    return Elsewhere(broker_id, room_bytes, in_sync, racks)


@dataclass
class BrokerMover:
    """Moves of a broker's replicas to other brokers, with Kafka's throttle."""

    tool: ReassignTool
    connection: OperatorConnection
    broker_id: int
    volumes: Sequence[ReliefVolume]
    rooms: BrokerRooms
    throttle: int
    stalled: timedelta

    def reassigned(self) -> frozenset[str]:
        """Return the partitions that are being reassigned between brokers.

        Raises:
            ToolFailed: the cluster can't be asked.
        """
        return self.tool.reassigned()

    def obstacle(self) -> str | None:
        """Return that others have a throttle, which the end of our moves would take away.

        Raises:
            ToolFailed: the broker can't be asked.
        """
        found = self.connection.broker_settings(self.broker_id).result()
        if isinstance(found, KafkaFailure):
            raise ToolFailed(found.sentence)
        for name in _THROTTLES:
            if found.get(name, str(NO_THROTTLE)) != str(NO_THROTTLE):
                return (
                    f"broker {self.broker_id} has {name} {found[name]} already, which the moves would replace"
                )
        return None

    def look(self, steps: Collection[PlannedStep]) -> Mapping[str, Replica]:
        """Return the replicas of these steps, by their partitions; they are at brokers.

        Raises:
            ToolFailed: the cluster can't be asked, or a log dir can't be listed.
        """
        names = [step.target for step in steps]
        dirs = local_dirs(self.volumes, names)
        present = self._present(names)
        found = {}
        for step in steps:
            here = size_in(dirs[step.target], PartitionState.LOG)
            removed = size_in(dirs[step.target], PartitionState.DELETED)
            brokers = present[step.target].brokers if step.target in present else ()
            ends = {*brokers_of(str(step.was)), *brokers_of(str(step.to))}
            if ends <= set(brokers):  # both ends at a time: it is being reassigned
                found[step.target] = Replica(str(step.was), step.to, here, 0, removed)
            else:
                size = here or step.frees_bytes
                found[step.target] = Replica(brokers_text(brokers), None, size, 0, removed)
        return found

    def _present(self, names: Iterable[str]) -> Mapping[str, PartitionReplicas]:
        found = self.connection.replicas_of(topics_of(names))
        if isinstance(found, KafkaFailure):
            raise ToolFailed(found.sentence)
        return found

    def target(self, goal: str, other: str) -> str:
        """Return the broker, in words, that gets a replica."""
        return f"broker {brokers_text(sorted(set(brokers_of(goal)) - set(brokers_of(other))))}"

    def missing_bytes(self, target: str) -> int:
        """Return the bytes that its fullest volume is over its soft limit; 0 if its report is not known."""
        broker_id = int(target.removeprefix("broker "))
        return -(self.rooms.of([broker_id]) or {}).get(broker_id, 0)

    def start(self, moves: Mapping[str, str]) -> None:
        """Have replicas copied to brokers; with the ones that have it, a reassignment ends.

        Raises:
            ToolFailed: not all of them have begun.
        """
        present = self._present(moves)
        # A new target does not end a reassignment: Kafka would first complete what it has begun.
        others = {
            name: goal
            for name, goal in moves.items()
            if name in present and _goes_elsewhere(present[name].brokers, brokers_of(goal))
        }
        if others:
            self.tool.cancel(brokers_reassignment(others))
        self.tool.execute(brokers_reassignment(moves), self.throttle)

    def finish(self, moves: Mapping[str, str]) -> None:
        """Take back the throttle.

        Raises:
            ToolFailed: it is still there.
        """
        self.tool.verify(brokers_reassignment(moves))


def _goes_elsewhere(present: Sequence[int], goal: Sequence[int]) -> bool:
    """Whether a partition is being reassigned, and not to these brokers: Kafka lists its target first."""
    return len(present) > len(goal) and list(present[: len(goal)]) != list(goal)
