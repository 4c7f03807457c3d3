"""Readings of signed records, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Sequence

from kquota.formats.records import TopicRecord
from kquota.formats.topic_replay import TopicReplay
from kquota.policy.usage import UsageRecord
from kquota.policy.view import ClusterView, FoldResult, NoRecord
from tests.unit.policy.signers import CLUSTER, TOPIC, Authorities, verifier
from tests.unit.policy.situations import NOW, TOLERANCE, free, raw, usage


def value(gigabytes: int, instance: str = "a") -> bytes:
    """A report of a volume of 100 GB with this many free."""
    message = raw(usage(free(gigabytes), InstanceId=instance))
    assert message is not None
    return message


def reading(*, authorities: Authorities | None = None, topic: str = TOPIC) -> TopicReplay:
    """A reading by the agent of broker 7, in a cluster with broker 8."""
    found = TopicReplay(TOLERANCE, verifier(authorities=authorities, topic=topic))
    found.know(CLUSTER, frozenset({7, 8}))
    return found


def read(
    into: TopicReplay, records: Sequence[TopicRecord], *, backlog: bool = False
) -> list[FoldResult | None]:
    events = into.read(records, NOW, backlog=backlog)
    return [None if event is None else into.fold(event, NOW) for event in events]


def counts(view: ClusterView, broker_id: int = 7) -> int | NoRecord:
    """How many GB of 100 are free, as far as the others know."""
    record = view.record_of(broker_id, NOW)
    return 100 - record.volumes[0].consumed_bytes // 10**9 if isinstance(record, UsageRecord) else record
