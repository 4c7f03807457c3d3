"""Reading a decision back from its JSON form, for people and for tools that look at the file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from typing import TypeVar

from kquota.formats.strict_json import printable
from kquota.policy.decision import Cause, Covered, Decision, Reason, State, Undetermined, UndeterminedCause
from kquota.policy.events import Hold, HoldAction, OrderTerms
from kquota.policy.limit_breaches import Resource
from kquota.policy.limits import exact_number
from kquota.policy.timestamps import InvalidTimestamp, parse_utc
from kquota.policy.topic_scope import TopicScope

_Choice = TypeVar("_Choice", bound=StrEnum)


class MalformedDecision(ValueError):
    """A document that is no decision; the text names the key."""


def read_decision_document(document: Mapping[str, object]) -> Decision:
    """Return the decision a document describes; its headroom is the written factor, to 6 decimals.

    Raises:
        MalformedDecision: a key is missing, of the wrong type, or contradicts another.
    """
    state = _one_of(State, document, "state")
    decision = Decision(
        headroom=_ratio(document, "factor"),
        reasons=tuple(_reason(entry) for entry in _objects(document, "reasons")),
        undetermined=tuple(_undetermined(entry) for entry in _objects(document, "undetermined")),
        fallback=document.get("fallback") is True,
        hold=_hold(document.get("hold")),
        decided_at=_moment(document, "decided_at"),
        covered=tuple(_covered(entry) for entry in _objects(document, "covered", optional=True)),
        scope=_scope(document),
    )
    if decision.state is not state:
        raise MalformedDecision(f"factor {float(decision.headroom):g} is not {state}")
    return decision


def _reason(entry: Mapping[str, object]) -> Reason:
    volume = entry.get("volume")
    return Reason(
        cause=_one_of(Cause, entry, "cause"),
        headroom=_ratio(entry, "headroom"),
        broker_id=_broker_id(entry),
        volume=printable(volume) if isinstance(volume, str) else None,
        resource=Resource.INODES if entry.get("resource") == Resource.INODES else Resource.BYTES,
    )


def _undetermined(entry: Mapping[str, object]) -> Undetermined:
    behind = entry.get("clock_behind_seconds")
    return Undetermined(
        _broker_id(entry),
        _one_of(UndeterminedCause, entry, "cause"),
        behind if type(behind) is int else None,
    )


def _covered(entry: Mapping[str, object]) -> Covered:
    until = None if entry.get("until") is None else _moment(entry, "until")
    return Covered(_undetermined(entry), until)


def _scope(document: Mapping[str, object]) -> TopicScope | None:
    if document.get("scope") != "topics":
        return None
    topics = document.get("topics")
    if not isinstance(topics, Mapping):
        raise MalformedDecision("topics is no object, although scope is topics")
    others = _ratio(document, "other_topics_factor") if "other_topics_factor" in document else Fraction(1)
    return TopicScope({printable(topic): _ratio(topics, topic) for topic in topics}, others)


def _hold(value: object) -> Hold | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise MalformedDecision("hold is neither null nor an object")
    note = OrderTerms(
        _moment(value, "until"), printable(_text(value, "reason")), printable(_text(value, "actor"))
    )
    return Hold(_one_of(HoldAction, value, "action"), note)


def _objects(
    document: Mapping[str, object], key: str, *, optional: bool = False
) -> list[Mapping[str, object]]:
    entries = document.get(key, [] if optional else None)
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise MalformedDecision(f"{key} is no list of objects")
    return entries


def _text(document: Mapping[str, object], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str):
        raise MalformedDecision(f"{key} is no text")
    return value


def _one_of(kind: type[_Choice], document: Mapping[str, object], key: str) -> _Choice:
    text = _text(document, key)
    try:
        return kind(text)
    except ValueError:
        raise MalformedDecision(f"{key} is {printable(text)}, none of {', '.join(kind)}") from None


def _moment(document: Mapping[str, object], key: str) -> datetime:
    try:
        return parse_utc(document.get(key))
    except InvalidTimestamp as error:
        raise MalformedDecision(f"{key}: {error}") from None


def _ratio(document: Mapping[str, object], key: str) -> Fraction:
    number = exact_number(document.get(key))
    if number is None or not 0 <= number <= 1:
        raise MalformedDecision(f"{key} is no number between 0 and 1")
    return number


def _broker_id(document: Mapping[str, object]) -> int | None:
    value = document.get("broker_id")
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise MalformedDecision("broker_id is neither null nor a number")
