"""Operators' orders, as this agent read them from the usage topic: for the journal and the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from kquota.core.records import (
    HOLD_KEY,
    BrokerOrderEvent,
    Event,
    HoldEvent,
    RecordHeaders,
    TombstoneEvent,
    broker_key,
    order_key,
)
from kquota.core.strict_json import printable
from kquota.core.timestamps import format_utc, from_epoch_ms


@dataclass(frozen=True, slots=True)
class OrderNews:
    """One order, its withdrawal, or a decommission: a sentence, and the Body of its history record.

    ``at`` is when the broker appended it to the topic, the same for every reader; None where it is not known.
    """

    sentence: str
    body: Mapping[str, object]
    decommission: bool = False
    at: datetime | None = None


def order_news(event: Event, headers: RecordHeaders, timestamp_ms: int | None = None) -> OrderNews | None:
    """Return what a record with this time orders; None for everything that is no operator's.

    Withdrawals and decommissions are tombstones: author and reason are in their headers ``actor`` and
    ``reason``.
    """
    news = partial(OrderNews, at=from_epoch_ms(timestamp_ms))
    actor, reason = _header(headers, "actor"), _header(headers, "reason")
    by = f" by {actor or 'an unnamed user'}" + (f" ({reason})" if reason else "")
    withdrawn = {"Order": None, "Actor": actor, "Reason": reason}
    match event:
        case HoldEvent(None):
            return news(f"the hold was released{by}", {"Key": HOLD_KEY, **withdrawn})
        case HoldEvent(hold) if hold is not None:
            text = f"the cluster is held at {hold.action.value} until {format_utc(hold.note.until)}"
            return news(
                f"{text} by {hold.note.actor or 'an unnamed user'} ({hold.note.reason})",
                {"Key": HOLD_KEY, "Order": hold.to_document()},
            )
        case BrokerOrderEvent(order, broker_id, note):
            key = order_key(order, broker_id)
            if note is None:
                sentence = f"the {order.value} of broker {broker_id} was ended{by}"
                return news(sentence, {"Key": key, **withdrawn})
            text = f"broker {broker_id} is in {order.value} until {format_utc(note.until)}"
            return news(
                f"{text} by {note.actor or 'an unnamed user'} ({note.reason})",
                {"Key": key, "Order": note.to_document()},
            )
        case TombstoneEvent(broker_id):
            sentence = f"broker {broker_id} was decommissioned{by}"
            return news(sentence, {"Key": broker_key(broker_id), **withdrawn}, decommission=True)
    return None


def _header(headers: RecordHeaders, name: str) -> str:
    value = next((value for key, value in headers if key == name and value is not None), b"")
    return printable(value.decode("utf-8", "replace"))
