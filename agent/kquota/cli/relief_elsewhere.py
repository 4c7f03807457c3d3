"""The other brokers, as places for replicas of a full volume, and their room."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from kquota.cli.cluster_look import look_at_cluster
from kquota.cli.relief_look import ReliefLook
from kquota.kafka.errors import KafkaFailure
from kquota.retention.broker_rooms import broker_rooms
from kquota.retention.operator_admin import OperatorConnection
from kquota.retention.relief import Elsewhere, StepKind
from kquota.retention.relief_moves import move
from kquota.settings import Settings

_READ_SECONDS = 10.0


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
    room_bytes = _rooms_of(racks.keys() - {broker_id}, settings)
    if room_bytes is None:
        return "the reports of other brokers can't be read"
    replicas = connection.replicas_of(topic for topic in situation.topics if situation.may_move(topic))
    if isinstance(replicas, KafkaFailure):
        return replicas.sentence
    in_sync = {name: one.brokers for name, one in replicas.items() if one.in_sync}
    return Elsewhere(broker_id, room_bytes, in_sync, racks)


def _rooms_of(brokers: Collection[int], settings: Settings) -> dict[int, int] | None:
    """Return the room of these brokers by what their agents report; None if the reports can't be read."""
    with look_at_cluster(settings) as looked:
        if not looked.wait(_READ_SECONDS):
            return None
        active = looked.membership.active or frozenset[int]()
        staleness = timedelta(seconds=settings.staleness_seconds)
        return broker_rooms(looked.view, active & set(brokers), datetime.now(UTC), staleness)
