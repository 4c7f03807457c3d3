"""Thresholds of bytes in, for a broker and for single topics (Broker-side quota V1), and their file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from kquota.formats.strict_json import InvalidJson, parse_json, printable

SCHEMA_VERSION = 1
TOTAL_KEY = "total.bytes.in.per.sec.threshold"
TOPIC_KEY = "bytes.in.per.sec.threshold"
RATE_ALLOWED = "allowed is a whole number of bytes per second, at least 0, such as 40M (10^6) or 40Mi (2^20)"

_MAX_BYTES_PER_SECOND = 2**63 - 1
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_RATE = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,6})?)(|[KMGT]i?)")
_FACTORS = {"": 1} | {
    unit + suffix: base**power
    for suffix, base in (("", 1000), ("i", 1024))
    for power, unit in enumerate("KMGT", start=1)
}


class InvalidThresholds(ValueError):
    """Thresholds that contradict themselves, or a document without any; names the allowed values."""


@dataclass(frozen=True, slots=True)
class TopicThresholds:
    """The bytes per second that one broker accepts, in all and for single topics.

    Raises:
        InvalidThresholds: one is out of range, a topic has an impossible name, or they add up to more than
            the total.
    """

    total_bytes_per_second: int
    topics: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, rate in ((TOTAL_KEY, self.total_bytes_per_second), *self.topics.items()):
            if not 0 <= rate <= _MAX_BYTES_PER_SECOND:
                raise InvalidThresholds(f"{place} is {rate}, {RATE_ALLOWED}")
        for topic in self.topics:
            if not _TOPIC.fullmatch(topic):
                raise InvalidThresholds(
                    f"'{printable(topic)}' is no name of a topic: allowed are letters, digits and . _ -"
                )
        taken = sum(self.topics.values())
        if taken > self.total_bytes_per_second:
            raise InvalidThresholds(
                f"the thresholds of single topics add up to {taken}, allowed is at most the total of "
                f"{self.total_bytes_per_second}"
            )
        object.__setattr__(self, "topics", dict(sorted(self.topics.items())))

    @property
    def rest_bytes_per_second(self) -> int:
        """The rest that topics without a threshold of their own share evenly."""
        return self.total_bytes_per_second - sum(self.topics.values())

    def with_total(self, bytes_per_second: int) -> TopicThresholds:
        """Return them with another total."""
        return replace(self, total_bytes_per_second=bytes_per_second)

    def with_topic(self, topic: str, bytes_per_second: int) -> TopicThresholds:
        """Return them with this threshold of a topic."""
        return replace(self, topics={**self.topics, topic: bytes_per_second})

    def without_topic(self, topic: str) -> TopicThresholds:
        """Return them without a threshold of this topic."""
        return replace(self, topics={name: rate for name, rate in self.topics.items() if name != topic})


def parse_rate(text: str) -> int:
    """Read bytes per second as operators write them: 40M is 40,000,000, 40Mi is 40 x 2^20.

    Raises:
        InvalidThresholds: it is no such rate, or no whole number of bytes.
    """
    match = _RATE.fullmatch(text.strip())
    if match:
        rate = Fraction(match[1]) * _FACTORS[match[2]]
        if rate.denominator == 1 and rate <= _MAX_BYTES_PER_SECOND:
            return int(rate)
    raise InvalidThresholds(f"'{printable(text)}' is no such rate: {RATE_ALLOWED}")


_BOM = "\ufeff".encode()


def parse_thresholds(raw: bytes | str) -> TopicThresholds:
    """Read the content of a thresholds file, as strictly as the broker does, which takes a BOM.

    Raises:
        InvalidThresholds: no JSON, an unknown key, another schema version, or thresholds out of range.
    """
    try:
        document = parse_json(
            raw.removeprefix(_BOM) if isinstance(raw, bytes) else raw.removeprefix("\ufeff")
        )
    except InvalidJson as error:
        raise InvalidThresholds(f"it is no JSON: {error}") from None
    document = _object(document, "the document", {"schema_version", TOTAL_KEY, "topics"})
    version = document.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise InvalidThresholds(f"schema_version is {version!r}, allowed is {SCHEMA_VERSION}")
    topics = {
        topic: _rate(_object(entry, f"topics.{topic}", {TOPIC_KEY}), TOPIC_KEY, f"topics.{topic}.")
        for topic, entry in _object(document.get("topics", {}), "topics").items()
    }
    return TopicThresholds(_rate(document, TOTAL_KEY, ""), topics)


def thresholds_to_document(thresholds: TopicThresholds) -> dict[str, object]:
    """Return the content of a thresholds file, ready for JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        TOTAL_KEY: thresholds.total_bytes_per_second,
        "topics": {topic: {TOPIC_KEY: rate} for topic, rate in thresholds.topics.items()},
    }


def _object(value: object, place: str, allowed: set[str] | None = None) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InvalidThresholds(f"{printable(place)} is no JSON object")
    for key in value:
        if allowed is not None and key not in allowed:
            names = ", ".join(sorted(allowed))
            raise InvalidThresholds(
                f"there is no key {printable(str(key))} in {printable(place)}, allowed are {names}"
            )
    return value


def _rate(document: Mapping[str, object], key: str, place: str) -> int:
    rate = document.get(key)
    if type(rate) is not int:
        raise InvalidThresholds(f"{printable(place)}{key} is {printable(repr(rate))}, {RATE_ALLOWED}")
    return rate
