"""Operators' orders, as this agent read them: for the journal and the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from kquota.formats.records import HOLD_KEY, RecordHeaders, broker_key, order_key, proven_name, relief_key
from kquota.formats.strict_json import printable
from kquota.policy.events import (
    BrokerOrderEvent,
    DecommissionEvent,
    Event,
    HoldEvent,
    ReliefEvent,
    TombstoneEvent,
    author_sentence,
)
from kquota.policy.timestamps import format_utc, from_epoch_ms


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

    Withdrawals are tombstones: their headers ``actor`` and ``reason`` have the author, unless they are
    signed, and the reason.
    """
    news = partial(OrderNews, at=from_epoch_ms(timestamp_ms))
    match event:
        case HoldEvent(None, signer):
            by, withdrawn = _withdrawn(signer, headers)
            return news(f"the hold was released{by}", {"Key": HOLD_KEY, **withdrawn})
        case HoldEvent(hold) if hold is not None:
            text = f"the cluster is held at {hold.action.value} until {format_utc(hold.note.until)}"
            return news(
                f"{text} by {hold.note.author} ({hold.note.reason})",
                {"Key": HOLD_KEY, "Order": hold.to_document()},
            )
        case BrokerOrderEvent(order, broker_id, note, signer):
            key = order_key(order, broker_id)
            if note is None:
                by, withdrawn = _withdrawn(signer, headers)
                sentence = f"the {order.value} of broker {broker_id} was ended{by}"
                return news(sentence, {"Key": key, **withdrawn})
            text = f"broker {broker_id} is in {order.value} until {format_utc(note.until)}"
            return news(
                f"{text} by {note.author} ({note.reason})",
                {"Key": key, "Order": note.to_document()},
            )
        case ReliefEvent(plan_id, None, signer):
            by, withdrawn = _withdrawn(signer, headers)
            return news(f"relief plan {plan_id} was ended{by}", {"Key": relief_key(plan_id), **withdrawn})
        case ReliefEvent(plan_id, note) if note is not None:
            text = f"relief plan {plan_id} is in force until {format_utc(note.until)}"
            return news(
                f"{text} by {note.author} ({note.reason})",
                {"Key": relief_key(plan_id), "Order": note.to_document()},
            )
        case DecommissionEvent(broker_id, gone) if gone is not None:
            sentence = f"broker {broker_id} was decommissioned by {gone.author} ({gone.reason})"
            body = {"Key": broker_key(broker_id), "Order": None, "Actor": gone.actor, "Reason": gone.reason}
            return news(sentence, body, decommission=True)
        case TombstoneEvent(broker_id, signer):
            by, withdrawn = _withdrawn(signer, headers)
            sentence = f"broker {broker_id} was decommissioned{by}"
            return news(sentence, {"Key": broker_key(broker_id), **withdrawn}, decommission=True)
    return None


def _withdrawn(signer: str | None, headers: RecordHeaders) -> tuple[str, Mapping[str, object]]:
    """Return who withdrew an order and why, as words and as fields of the history."""
    typed, reason = _header(headers, "actor"), _header(headers, "reason")
    actor = typed if signer is None else proven_name(signer)
    author = author_sentence(actor, None if typed == actor else typed)
    by = f" by {author}" + (f" ({reason})" if reason else "")
    return by, {"Order": None, "Actor": actor, "Reason": reason}


def _header(headers: RecordHeaders, name: str) -> str:
    value = next((value for key, value in headers if key == name and value is not None), b"")
    return printable(value.decode("utf-8", "replace"))
