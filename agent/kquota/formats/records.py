"""The meaning of the records of the usage topic and of the orders topic: key and value → one event.

Keys of the usage topic: a broker id as decimal text (usage record).
Keys of the orders topic: ``hold``, ``quarantine/<id>``, ``maintenance/<id>``, ``decommission/<id>``,
``relief/<plan>``.
An absent value is a tombstone; unknown keys are ignored. No input raises.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from kquota.formats.strict_json import InvalidJson, ParsedJson, parse_json, printable
from kquota.formats.usage_fields import MalformedRecord
from kquota.formats.usage_format import parse_usage
from kquota.policy.events import (
    BrokerOrder,
    BrokerOrderEvent,
    Decommission,
    DecommissionEvent,
    Event,
    Hold,
    HoldAction,
    HoldEvent,
    IgnoredEvent,
    MalformedEvent,
    OrderTerms,
    ReliefEvent,
    TombstoneEvent,
    UsageEvent,
    WrongTopicEvent,
)
from kquota.policy.timestamps import InvalidTimestamp, from_epoch_ms, parse_utc

RawValue = bytes | str | ParsedJson
RecordHeaders = tuple[tuple[str, bytes | None], ...]
MAX_BROKER_ID = 2**31 - 1
HOLD_KEY = "hold"
_BROKER_KEY = re.compile(r"0|[1-9][0-9]{0,9}")
DECOMMISSION_KEY = "decommission"
_BROKER_ORDER_KEY = re.compile(r"(quarantine|maintenance|decommission)/(0|[1-9][0-9]{0,9})")
_RELIEF_KEY = re.compile(r"relief/([A-Za-z0-9._-]{1,64})")
# Bounds of an order, which readers enforce: its end after a broker appended it, and numbers of characters.
LONGEST_ORDER = timedelta(days=30)
LONGEST_REASON = 500
LONGEST_ACTOR = 200


class TopicKind(StrEnum):
    """Which of our topics a record is on."""

    USAGE = "usage"
    ORDERS = "orders"


REGULAR = "kquota-regular", b""
"""The header of a report whose turn has come, and that says nothing new but figures: its readers may rest."""


class TopicRecord(NamedTuple):
    """A record as it is in one of our topics. ``value`` None is a tombstone.

    ``appended_ms`` is its own timestamp (epoch, None if not known), and proves nothing about the freshness of
    its content.
    """

    key: bytes | None
    value: bytes | None
    appended_ms: int | None = None
    partition: int = 0
    headers: RecordHeaders = ()
    topic: TopicKind = TopicKind.USAGE
    offset: int = 0


def broker_key(broker_id: int) -> str:
    """Return the key of a broker's usage record."""
    return str(broker_id)


def order_key(order: BrokerOrder, broker_id: int) -> str:
    """Return the key of an order about one broker."""
    return f"{order.value}/{broker_id}"


def decommission_key(broker_id: int) -> str:
    """Return the key of a decommission."""
    return f"{DECOMMISSION_KEY}/{broker_id}"


def relief_key(plan_id: str) -> str:
    """Return the key of the order that a relief plan is."""
    return f"relief/{plan_id}"


def read_record(record: TopicRecord, signer: str | None = None, certificate: str | None = None) -> Event:
    """Return the meaning of a record of one of our topics, whose orders have to be within their bounds."""
    return read_event(record.key, record.value, record.appended_ms, signer, record.topic, certificate)


def read_event(
    key: bytes | str | None,
    value: RawValue | None,
    appended_ms: int | None = None,
    signer: str | None = None,
    topic: TopicKind | None = None,
    certificate: str | None = None,
) -> Event:
    """Return the meaning of a record. Never raises, whatever the bytes are.

    ``appended_ms`` is the record's own timestamp (epoch), None where that is not known; ``signer`` is who is
    known to have written it, with the ``certificate`` of that fingerprint. Without a ``topic`` it is one of a
    replay: an order is taken as it is.
    """
    text = _key_text(key)
    if text is None:
        return IgnoredEvent("" if key is None else printable(repr(key)))
    broker_id = None if topic is TopicKind.ORDERS else _broker_id(text)
    if topic is TopicKind.USAGE and broker_id is None:
        return WrongTopicEvent(printable(text)) if _is_order_key(text) else IgnoredEvent(printable(text))
    writing = _Writing(from_epoch_ms(appended_ms), signer, topic, certificate)
    try:
        if broker_id is not None:
            return _usage_event(broker_id, value, writing)
        if text == HOLD_KEY:
            return HoldEvent(None if value is None else _hold(_document(value), writing), signer)
        match = _BROKER_ORDER_KEY.fullmatch(text)
        if match and int(match[2]) <= MAX_BROKER_ID:
            about = int(match[2])
            if match[1] != DECOMMISSION_KEY:
                note = None if value is None else _note(_document(value), writing)
                return BrokerOrderEvent(BrokerOrder(match[1]), about, note, signer)
            if topic is TopicKind.ORDERS:
                gone = None if value is None else _decommission(_document(value), writing)
                return DecommissionEvent(about, gone, signer)
        if topic is TopicKind.ORDERS and (match := _RELIEF_KEY.fullmatch(text)):
            note = None if value is None else _note(_document(value), writing)
            return ReliefEvent(match[1], note, signer)
    except MalformedRecord as error:
        return MalformedEvent(broker_id, text, printable(str(error)))
    return IgnoredEvent(printable(text))


def _is_order_key(text: str) -> bool:
    return text == HOLD_KEY or any(key.fullmatch(text) for key in (_BROKER_ORDER_KEY, _RELIEF_KEY))


class _Writing(NamedTuple):
    """When a broker appended the record, who has signed it, where it is, and by which certificate.

    None for a replay's.
    """

    appended_at: datetime | None
    signer: str | None
    topic: TopicKind | None
    certificate: str | None


def _key_text(key: bytes | str | None) -> str | None:
    if key is None or isinstance(key, str):
        return key
    try:
        return key.decode("ascii")
    except UnicodeDecodeError:
        return None


def _broker_id(text: str) -> int | None:
    return int(text) if _BROKER_KEY.fullmatch(text) and int(text) <= MAX_BROKER_ID else None


def _usage_event(broker_id: int, value: RawValue | None, writing: _Writing) -> Event:
    if value is None:
        return TombstoneEvent(broker_id, writing.signer, writing.appended_at)
    record = replace(
        parse_usage(value),
        appended_at=writing.appended_at,
        signer=writing.signer,
        certificate=writing.certificate,
    )
    return UsageEvent(broker_id, record)


def _hold(document: dict[str, object], writing: _Writing) -> Hold:
    action = document.get("Action")
    if not isinstance(action, str) or action not in set(HoldAction):
        found = repr(action[:40]) if isinstance(action, str) else "the value"
        raise MalformedRecord(f"Action: {found} is none of {', '.join(HoldAction)}")
    return Hold(HoldAction(action), _note(document, writing))


def _document(value: RawValue) -> dict[str, object]:
    try:
        document = parse_json(value)
    except InvalidJson as error:
        raise MalformedRecord(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise MalformedRecord("the value: must be a JSON object")
    return document


def _note(document: dict[str, object], writing: _Writing) -> OrderTerms:
    """An order without an end is refused: a forgotten order must end by itself."""
    try:
        until = parse_utc(document.get("Until"))
    except InvalidTimestamp as error:
        raise MalformedRecord(f"Until: {error}") from None
    if writing.topic is not None and until - _appended_at(writing) > LONGEST_ORDER:
        raise MalformedRecord(f"Until: must be at most {LONGEST_ORDER.days} days after the order was given")
    return OrderTerms(until, *_words(document, writing))


def _decommission(document: dict[str, object], writing: _Writing) -> Decommission:
    return Decommission(_appended_at(writing), *_words(document, writing))


def _appended_at(writing: _Writing) -> datetime:
    if writing.appended_at is None:
        raise MalformedRecord("the time at which a broker appended it is not known")
    return writing.appended_at


def _words(document: dict[str, object], writing: _Writing) -> tuple[str, str, str | None]:
    """Return reason, author, and the name that was typed if it is not the proven author's."""
    texts = []
    for key, longest in (("Reason", LONGEST_REASON), ("Actor", LONGEST_ACTOR)):
        text = document.get(key, "")
        if not isinstance(text, str):
            raise MalformedRecord(f"{key}: must be a text of at most {longest} characters")
        if writing.topic is not None and not (text.strip() and len(text) <= longest):
            raise MalformedRecord(f"{key}: must be a text of 1 to {longest} characters, not only blanks")
        texts.append(printable(text))
    reason, typed = texts
    proven = None if writing.signer is None else proven_name(writing.signer)
    return (reason, typed, None) if proven in (None, typed) else (reason, proven, typed)


def proven_name(signer: str) -> str:
    """Return how the writer of a signed record is called: an operator by name, an agent as ``agent/3``."""
    return signer.removeprefix("operator/")
