"""The fields of a usage record, read with distrust: each is checked, bounded and fit to print."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from math import ceil

from kquota.formats.strict_json import printable
from kquota.policy.limits import MAX_BYTES, InvalidLimit, Limit, LimitPair, exact_number, json_number
from kquota.policy.membership import MAX_JOINED
from kquota.policy.timestamps import InvalidTimestamp, parse_utc

MAX_APPLIED_KEYS = 32
MAX_LISTED_BROKERS = 256
_BROKER_ID = re.compile(r"0|[1-9][0-9]{0,9}")


class MalformedRecord(ValueError):
    """A value that is no usage record; the text names the key, its value and the allowed values."""


def limit_field(document: Mapping[str, object], where: str) -> tuple[Limit | None, str | None]:
    """Return a limit, or the problem of its type or level; malformed without them."""
    type_name, level = document.get("type"), document.get("level")
    if not isinstance(type_name, str):
        raise MalformedRecord(f"{where}.type: must be a text")
    if isinstance(level, bool) or not isinstance(level, (int, float, Decimal)):
        raise MalformedRecord(f"{where}.level: must be a number")
    try:
        if type(level) is int:
            return _whole_limit(type_name, level), None
        return Limit.parse(document), None
    except InvalidLimit as error:
        return None, f"{where}: {error}"


@lru_cache(maxsize=256)
def _whole_limit(type_name: str, level: int) -> Limit:
    """Read a limit once: the records of a cluster bring the same few again and again."""
    return Limit.parse({"type": type_name, "level": level})


def limit_pair(soft: Limit, hard: Limit) -> tuple[LimitPair | None, str | None]:
    """Return both limits as a pair, or the problem of their order."""
    try:
        return LimitPair(soft, hard), None
    except InvalidLimit as error:
        return None, str(error)


def object_field(value: object, where: str | int) -> Mapping[str, object]:
    """Return the value if it is a JSON object; a number stands for that volume."""
    if not isinstance(value, dict):
        place = f"Volumes[{where}]" if isinstance(where, int) else where
        raise MalformedRecord(f"{place}: must be a JSON object")
    return value


def required(record: Mapping[str, object], key: str) -> object:
    """Return the value of a key that has to be there."""
    if key not in record:
        raise MalformedRecord(f"{key} is missing")
    return record[key]


def size_field(value: object, index: int, key: str) -> int:
    """Return a whole number of bytes, of the volume of that index."""
    # A cluster has thousands of them: whole numbers, as nearly all are, need no fraction.
    number = value if type(value) is int else exact_number(value)
    if number is None or number.denominator != 1 or not 0 <= number <= MAX_BYTES:
        raise MalformedRecord(
            f"Volumes[{index}].{key}: must be a whole number of bytes between 0 and {MAX_BYTES}"
        )
    return number.numerator


def sequence_field(record: Mapping[str, object]) -> int | None:
    """Return the number of the record, or None where there is none."""
    value = record.get("Sequence")
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_BYTES else None
    )


def replaces_field(record: Mapping[str, object]) -> tuple[str, int] | None:
    """Return the instance that has ended by the record, with its number; None if the record names none."""
    value = record.get("Replaces")
    if not isinstance(value, Mapping):
        return None
    instance_id, sequence = optional_text(value.get("Instance")), sequence_field(value)
    return None if instance_id is None or sequence is None else (instance_id, sequence)


def optional_text(value: object) -> str | None:
    """Return a text fit to print, or None where there is none."""
    return printable(value) if isinstance(value, str) else None


def applied_field(record: Mapping[str, object]) -> Mapping[str, str | int | float | None] | None:
    """Return what the plug-in applies, fit to print and to be written as JSON; nested values are dropped."""
    document = record.get("Applied")
    if not isinstance(document, dict):
        return None
    applied: dict[str, str | int | float | None] = {}
    for key, value in list(document.items())[:MAX_APPLIED_KEYS]:
        if value is None or isinstance(value, bool):
            applied[printable(key)] = value
        elif isinstance(value, str):
            applied[printable(key)] = printable(value)
        elif type(value) is int and abs(value) <= MAX_BYTES:
            applied[printable(key)] = value
        elif isinstance(value, (Decimal, float)) and (number := _plain_number(value)) is not None:
            applied[printable(key)] = number
    return applied


@lru_cache(maxsize=256)
def _plain_number(value: Decimal | float) -> int | float | None:
    """Return the number as JSON writes it, or None for one of no sane size; a cluster's factors are alike."""
    number = exact_number(value)
    return None if number is None else json_number(number)


def joined_field(record: Mapping[str, object]) -> Mapping[int, datetime]:
    """Return when brokers became active; an entry that can't be used is one that is not there."""
    document = record.get("Joined")
    joined: dict[int, datetime] = {}
    for key, value in list(document.items())[:MAX_JOINED] if isinstance(document, dict) else ():
        if not _BROKER_ID.fullmatch(key):
            continue
        try:
            joined[int(key)] = parse_utc(value)
        except InvalidTimestamp:
            continue
    return joined


def listed_field(record: Mapping[str, object]) -> frozenset[int] | None:
    """Return the brokers that the agent has seen in the cluster's list, None if it names none."""
    value = record.get("Listed")
    if not isinstance(value, list):
        return None
    return frozenset(one for one in value[:MAX_LISTED_BROKERS] if type(one) is int and one >= 0)


def log_dirs_field(value: object) -> tuple[str, ...]:
    """Return the log dirs, fit to print."""
    if not isinstance(value, list):
        return ()
    return tuple([printable(entry) for entry in value[:64] if isinstance(entry, str)])


def fill_field(value: object) -> int | None:
    """Return a volume's fill rate; it decides nothing, so one that can't be used is one that is not known."""
    if value is None:
        return None
    number = exact_number(value)
    return None if number is None or abs(number) > MAX_BYTES else round(number)


def ceiling_field(value: object) -> int | None:
    """Return a volume's fill ceiling, rounded up; one that can't be used covers nothing."""
    number = exact_number(value)
    return None if number is None or not 0 <= number <= MAX_BYTES else ceil(number)
