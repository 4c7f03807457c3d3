"""The meaning of the records of the usage topic: key and value → one event.

Keys: a broker id as decimal text (usage record), ``hold``, ``quarantine/<id>``, ``maintenance/<id>``.
An absent value is a tombstone; unknown keys are ignored. No input raises.

``kquota decide`` replays a situation from records in offset order, one JSON object a line; a JSON null is a
tombstone there, and a text the value as it stood in the topic:

    {"key": "1", "timestamp_ms": 0, "value": {…} | null | "raw text"}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from kquota.core.strict_json import MAX_TEXT, InvalidJson, ParsedJson, parse_json, printable
from kquota.core.timestamps import InvalidTimestamp, format_utc, from_epoch_ms, parse_utc
from kquota.core.usage import UsageRecord
from kquota.core.usage_fields import MalformedRecord
from kquota.core.usage_format import parse_usage

_MAX_LINE_BYTES = 8 * 1024 * 1024
RawValue = bytes | str | ParsedJson
RecordHeaders = tuple[tuple[str, bytes | None], ...]
MAX_BROKER_ID = 2**31 - 1
HOLD_KEY = "hold"
_BROKER_KEY = re.compile(r"0|[1-9][0-9]{0,9}")
_BROKER_ORDER_KEY = re.compile(r"(quarantine|maintenance)/(0|[1-9][0-9]{0,9})")


class HoldAction(StrEnum):
    """The state at which an operator holds the cluster."""

    PAUSE = "pause"
    OPEN = "open"


class BrokerOrder(StrEnum):
    """The orders that an operator may give about one broker."""

    QUARANTINE = "quarantine"  # no vote except on itself
    MAINTENANCE = "maintenance"  # a planned stop: its record stays fresh


@dataclass(frozen=True, slots=True)
class Note:
    """The author of an order, its reason, and its end."""

    until: datetime
    reason: str
    actor: str

    def in_force(self, now: datetime) -> bool:
        """Whether the order still holds; at ``until`` it has ended."""
        return now < self.until

    def to_document(self) -> dict[str, object]:
        """Return the JSON form."""
        return {"Until": format_utc(self.until), "Reason": self.reason, "Actor": self.actor}


@dataclass(frozen=True, slots=True)
class Hold:
    """An operator's hold on the whole cluster."""

    action: HoldAction
    note: Note

    def to_document(self) -> dict[str, object]:
        """Return the JSON form."""
        return {"Action": self.action.value, **self.note.to_document()}


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """A broker's well-formed usage record."""

    broker_id: int
    record: UsageRecord


@dataclass(frozen=True, slots=True)
class TombstoneEvent:
    """A broker's record was removed: it is decommissioned, or a client pretends so."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class MalformedEvent:
    """A record that must not be used; ``broker_id`` is None where it is an operator's."""

    broker_id: int | None
    key: str
    problem: str


@dataclass(frozen=True, slots=True)
class HoldEvent:
    """A hold was set, or (None) released."""

    hold: Hold | None


@dataclass(frozen=True, slots=True)
class BrokerOrderEvent:
    """An order about one broker was given, or (None) withdrawn."""

    order: BrokerOrder
    broker_id: int
    note: Note | None


@dataclass(frozen=True, slots=True)
class IgnoredEvent:
    """A key that is not ours."""

    key: str


class Refusal(StrEnum):
    """Why a record's signature, or the lack of one, keeps it from counting."""

    UNSIGNED = "unsigned"
    WRONG_SIGNATURE = "wrong_signature"
    UNKNOWN_AUTHORITY = "unknown_authority"
    EXPIRED = "expired"
    NOT_FOR_KEY = "not_for_key"
    REPLAYED = "replayed"


@dataclass(frozen=True, slots=True)
class RefusedEvent:
    """A record that does not count; the one before it of its key goes on counting."""

    key: str
    cause: Refusal


Event = (
    UsageEvent | TombstoneEvent | MalformedEvent | HoldEvent | BrokerOrderEvent | IgnoredEvent | RefusedEvent
)


class RawRecord(NamedTuple):
    """A record as it is in the topic; ``appended_ms`` is its own timestamp (epoch), None if not known."""

    key: bytes | str | None
    value: RawValue | None
    appended_ms: int | None = None
    partition: int = 0
    headers: RecordHeaders = ()


def broker_key(broker_id: int) -> str:
    """Return the key of a broker's usage record."""
    return str(broker_id)


def order_key(order: BrokerOrder, broker_id: int) -> str:
    """Return the key of an order about one broker."""
    return f"{order.value}/{broker_id}"


def read_event(
    key: bytes | str | None,
    value: RawValue | None,
    appended_ms: int | None = None,
    signer: str | None = None,
) -> Event:
    """Return the meaning of a record of the topic. Never raises, whatever the bytes are.

    ``appended_ms`` is the record's own timestamp (epoch), None where that is not known; ``signer`` is who is
    known to have written it.
    """
    text = _key_text(key)
    if text is None:
        return IgnoredEvent("" if key is None else printable(repr(key)))
    broker_id = _broker_id(text)
    try:
        if broker_id is not None:
            return _usage_event(broker_id, value, appended_ms, signer)
        if text == HOLD_KEY:
            return HoldEvent(None if value is None else _hold(_document(value)))
        match = _BROKER_ORDER_KEY.fullmatch(text)
        if match and int(match[2]) <= MAX_BROKER_ID:
            note = None if value is None else _note(_document(value))
            return BrokerOrderEvent(BrokerOrder(match[1]), int(match[2]), note)
    except MalformedRecord as error:
        return MalformedEvent(broker_id, text, printable(str(error)))
    return IgnoredEvent(printable(text))


def _key_text(key: bytes | str | None) -> str | None:
    if key is None or isinstance(key, str):
        return key
    try:
        return key.decode("ascii")
    except UnicodeDecodeError:
        return None


def _broker_id(text: str) -> int | None:
    return int(text) if _BROKER_KEY.fullmatch(text) and int(text) <= MAX_BROKER_ID else None


def _usage_event(
    broker_id: int, value: RawValue | None, appended_ms: int | None, signer: str | None
) -> Event:
    if value is None:
        return TombstoneEvent(broker_id)
    appended_at = from_epoch_ms(appended_ms)
    return UsageEvent(broker_id, replace(parse_usage(value), appended_at=appended_at, signer=signer))


def _hold(document: dict[str, object]) -> Hold:
    action = document.get("Action")
    if not isinstance(action, str) or action not in set(HoldAction):
        found = repr(action[:40]) if isinstance(action, str) else "the value"
        raise MalformedRecord(f"Action: {found} is none of {', '.join(HoldAction)}")
    return Hold(HoldAction(action), _note(document))


def _document(value: RawValue) -> dict[str, object]:
    try:
        document = parse_json(value)
    except InvalidJson as error:
        raise MalformedRecord(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise MalformedRecord("the value: must be a JSON object")
    return document


def _note(document: dict[str, object]) -> Note:
    """An order without an end is refused: a forgotten order must end by itself."""
    try:
        until = parse_utc(document.get("Until"))
    except InvalidTimestamp as error:
        raise MalformedRecord(f"Until: {error}") from None
    texts = []
    for key in ("Reason", "Actor"):
        text = document.get(key, "")
        if not isinstance(text, str):
            raise MalformedRecord(f"{key}: must be a text of at most {MAX_TEXT} characters")
        texts.append(printable(text))
    return Note(until, texts[0], texts[1])


class InvalidReplay(ValueError):
    """A line of the file that is no record; the text names the line."""


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """Yield the event of each line; empty lines are skipped.

    Raises:
        InvalidReplay: a line that is not of the form above.
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield read_event(*_record(number, line))


def _record(number: int, line: str) -> tuple[str, str | ParsedJson | None, int | None]:
    try:
        entry = parse_json(line, _MAX_LINE_BYTES)
    except InvalidJson as error:
        raise InvalidReplay(f"line {number}: not JSON: {error}") from None
    if not isinstance(entry, dict) or "value" not in entry or not isinstance(entry.get("key"), str):
        raise InvalidReplay(f'line {number}: must be an object with "key" (a text) and "value"')
    value, appended_ms = entry["value"], entry.get("timestamp_ms")
    return (
        entry["key"],
        value if value is None or isinstance(value, str) else ParsedJson(value),
        appended_ms if type(appended_ms) is int else None,
    )
