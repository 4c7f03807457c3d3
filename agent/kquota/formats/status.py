"""The status of the whole cluster as one document: what ``kquota status`` shows and prints as JSON."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction

from kquota.formats.sentences import decision_sentence, what_ends_it
from kquota.formats.signature_headers import SigningMode
from kquota.formats.warnings import warnings_of
from kquota.policy.decide import Situation
from kquota.policy.decision import Covered, Decision, Mode, decision_document, note_document, written_factor
from kquota.policy.events import BrokerOrder, OrderTerms
from kquota.policy.inodes import Inodes
from kquota.policy.standing_orders import orders_in_force
from kquota.policy.timestamps import format_utc
from kquota.policy.usage import UsageRecord
from kquota.policy.view import ClusterView, NoRecord
from kquota.policy.volume import Volume

SCHEMA_VERSION = 1


def status_document(
    view: ClusterView,
    situation: Situation,
    decision: Decision,
    now: datetime,
    *,
    release_margin: Fraction,
    cluster_id: str | None = None,
    cluster_topics: int | None = None,
    signing: SigningMode = SigningMode.OFF,
) -> dict[str, object]:
    """Return brokers, volumes, limits in bytes, headroom, states and ages; ages in seconds.

    ``release_margin`` is the headroom (0..1) above which agents release a latch, ``cluster_topics`` the
    number of the cluster's topics where it is known.

    It is published: ``schemas/status.schema.json``.
    """
    verdict = decision_document(decision)
    undetermined = {entry.broker_id: entry.cause.value for entry in decision.undetermined}
    covered = {entry.broker_id: entry for entry in decision.covered}
    # a broker that was decommissioned, or that a thief has invented, is none of the cluster's
    gone = NoRecord.TOMBSTONE, NoRecord.REVOKED
    known = {id_ for id_ in view.brokers if view.record_of(id_, now) not in gone}
    ids = sorted((situation.active_brokers or frozenset()) | known)
    brokers = [
        _broker(view, broker_id, situation, undetermined.get(broker_id), covered.get(broker_id), now)
        for broker_id in ids
    ]
    for broker in brokers:
        broker["counts"] = broker["broker_id"] not in decision.unvouched
    if signing is SigningMode.OFF:
        for broker in brokers:
            broker["signed"] = None
    return {
        "schema_version": SCHEMA_VERSION,
        "at": format_utc(now),
        "cluster_id": cluster_id,
        "sentence": decision_sentence(decision, cluster_topics),
        "what_ends_it": what_ends_it(decision, brokers, release_margin),
        **{key: verdict[key] for key in ("state", "factor", "fallback", "hold", "reasons", "undetermined")},
        "scope": verdict.get("scope", "cluster"),
        "topics": verdict.get("topics"),
        "other_topics_factor": verdict.get("other_topics_factor"),
        "cluster_topics": cluster_topics,
        "signing": signing.value,
        "orders": [order.to_document() for order in orders_in_force(view, now)],
        "warnings": warnings_of(decision),
        "brokers": brokers,
    }


def _broker(
    view: ClusterView,
    broker_id: int,
    situation: Situation,
    undetermined: str | None,
    covered: Covered | None,
    now: datetime,
) -> dict[str, object]:
    record = view.record_of(broker_id, now)
    known = None if isinstance(record, NoRecord) else record
    active = situation.active_brokers
    return {
        "broker_id": broker_id,
        "active": None if active is None else broker_id in active,
        "joining": broker_id in situation.joining_brokers,
        "undetermined": undetermined,
        "covered": None if covered is None else covered.to_document(),
        "quarantine": _note(view.order_in_force(BrokerOrder.QUARANTINE, broker_id, now)),
        "maintenance": _note(view.order_in_force(BrokerOrder.MAINTENANCE, broker_id, now)),
        "snapshot_at": None if known is None else format_utc(known.snapshot_at),
        "age_seconds": None if known is None else round((now - known.snapshot_at).total_seconds(), 3),
        "applied": None if known is None or known.applied is None else dict(known.applied),
        "mode": None if known is None else _mode(known),
        "signed": None if known is None else known.signer is not None,
        "volumes": [] if known is None else [_volume(volume) for volume in known.volumes],
    }


def _mode(record: UsageRecord) -> str | None:
    """Return the mode in force at the broker's plug-in; None if its record has no mode that we know."""
    said = None if record.applied is None else record.applied.get("Mode")
    return str(said) if said in tuple(Mode) else None


def _volume(volume: Volume) -> dict[str, object]:
    bounds = None if volume.limits is None else volume.limits.bounds(volume.capacity_bytes)
    headroom = volume.headroom()
    seconds_to_soft, seconds_to_hard = volume.seconds_to_limits()
    return {
        "volume": volume.name,
        "volume_id": volume.volume_id,
        "log_dirs": list(volume.log_dirs),
        "role": volume.role.value,
        "status": volume.status.value,
        "latched": volume.latched,
        "capacity_bytes": volume.capacity_bytes,
        "consumed_bytes": volume.consumed_bytes,
        "soft_bytes": None if bounds is None else int(bounds.soft_bytes),
        "hard_bytes": None if bounds is None else int(bounds.hard_bytes),
        "fill_bytes_per_second": volume.fill_bytes_per_second,
        "seconds_to_soft": None if seconds_to_soft is None else round(seconds_to_soft, 1),
        "seconds_to_hard": None if seconds_to_hard is None else round(seconds_to_hard, 1),
        "headroom": None if headroom is None else written_factor(headroom),
        "inodes": None if volume.inodes is None else _inodes(volume.inodes),
        "topics": None if volume.topics is None else list(volume.topics),
        "limits_problem": volume.limits_problem,
    }


def _inodes(inodes: Inodes) -> dict[str, object]:
    return {
        "total": inodes.total,
        "free": inodes.free,
        "soft_free": inodes.free_at(Fraction(1)),
        "hard_free": inodes.free_at(Fraction(0)),
        "headroom": written_factor(inodes.headroom()),
    }


def _note(note: OrderTerms | None) -> dict[str, object] | None:
    return None if note is None else note_document(note)
