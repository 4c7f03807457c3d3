"""The other brokers, as places for replicas of a full volume, and their room."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from kquota.cli.cluster_look import look_at_cluster
from kquota.cli.relief_look import ReliefLook
from kquota.core.broker_rooms import broker_rooms
from kquota.core.relief import Elsewhere, StepKind
from kquota.core.relief_moves import move
from kquota.kafka.errors import KafkaFailure
from kquota.kafka.operator_admin import OperatorConnection
from kquota.settings import Settings

_READ_SECONDS = 10.0


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
    connection: OperatorConnection,
    broker_id: int,
    *,
    always: bool,
) -> ReliefLook:
    """Add to a look other brokers where log dirs are not enough, or `always`."""
    situation = looked.situation
    if not situation.to_free_bytes:
        return looked
    found = move(situation, StepKind.LOGDIR_MOVE)
    if not always and found is not None and found.enough:
        return looked
    elsewhere = _elsewhere(looked, settings, connection, broker_id)
    if isinstance(elsewhere, str):
        return replace(looked, notes=(*looked.notes, f"no move to another broker is ranked: {elsewhere}"))
    return replace(looked, situation=replace(situation, elsewhere=elsewhere))


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
