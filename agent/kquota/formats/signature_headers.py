"""Signatures of the usage topic's records: what they cover, who may write which key, and what is refused.

A signature covers the record's place (cluster, topic, partition), key, value, counter and certificate, so
that a copy elsewhere, or of another time, does not verify. The certificate is part of the record and names
its owner in a URI (a subject alternative name of RFC 5280):

    kquota://<cluster id or *>/agent/<broker id>
    kquota://<cluster id or *>/operator/<name>

The algorithms are not here: an ``Authorities`` is passed in, see ``kquota.trust``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from kquota.formats.records import RecordHeaders, TopicKind, read_event
from kquota.policy.events import (
    BrokerOrderEvent,
    DecommissionEvent,
    HoldEvent,
    Refusal,
    ReliefEvent,
    TombstoneEvent,
)

SIGNATURE_HEADER = "kquota-signature"
SIGNER_HEADER = "kquota-signer"
COUNTER_HEADER = "kquota-counter"
# Generous: a certificate of the roles' authority takes 400 bytes, a signature 72.
MAX_CERTIFICATE_BYTES = 8192
MAX_SIGNATURE_BYTES = 1024
MAX_COUNTER = 2**63 - 1
# A counter is its signer's time, or little more, and a broker appends the record soon after. A report that is
# appended much later was kept back, and one whose counter is far ahead would make its writer's next ones look
# old. An hour is more than clocks that are wrong by their time zone differ.
REPORTS_TOLERANCE_MS = 3_600_000
# An order may be withdrawn at any time, and a copy that is appended again must not count any more.
ORDERS_TOLERANCE_MS = 300_000

_NAMES = (SIGNATURE_HEADER, SIGNER_HEADER, COUNTER_HEADER)
_COUNTER_BYTES = 8
_DOMAIN = b"kquota record, version 1"
_URI = re.compile(r"kquota://(\*|[A-Za-z0-9_-]{1,64})/(agent|operator)/([A-Za-z0-9._@-]{1,64})")


class SigningMode(StrEnum):
    """The values of ``signing.mode``."""

    OFF = "off"  # headers are neither written nor looked at
    ACCEPT = "accept"  # unsigned records count, too
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class SignatureHeaders:
    """The headers of a signed record: nothing of them is verified."""

    signature: bytes
    certificate: bytes
    counter: int

    def to_headers(self) -> tuple[tuple[str, bytes], ...]:
        """Return them as they are written."""
        counter = self.counter.to_bytes(_COUNTER_BYTES, "big")
        return tuple(zip(_NAMES, (self.signature, self.certificate, counter), strict=True))


class Certificate(Protocol):
    """A certificate that one of our authorities has issued; ``names`` are its URIs."""

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of its public key, in lower-case hexadecimal digits."""

    @property
    def names(self) -> Sequence[str]:
        """The URIs among its subject alternative names."""

    def is_valid_at(self, at: datetime) -> bool:
        """Return whether it and its authority are valid at that time."""

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Return whether its owner has signed the message."""


class Authorities(Protocol):
    """Whom we trust to issue certificates."""

    def certificate(self, der: bytes) -> Certificate | None:
        """Return the certificate; None where none of them has issued it."""

    def knows(self, der: bytes) -> bool:
        """Return whether a certificate was verified or refused before, so that it costs nothing now."""

    def authority_end(self, der: bytes) -> datetime | None:
        """Return when the authority that has issued a certificate ends; None where none of them has."""

    def revoked(self) -> frozenset[str]:
        """Return the fingerprints of the revoked ones: the same object until there are others."""

    @property
    def problems(self) -> Iterable[str]:
        """Why the present files can't be read, so that those of before count."""


def signed_bytes(
    cluster_id: str,
    topic: str,
    partition: int,
    key: bytes,
    value: bytes | None,
    counter: int,
    certificate: bytes,
) -> bytes:
    """Return what a signature covers; no two records have the same. ``value`` None is a tombstone.

    Each text comes after its length (4 bytes); then the partition (4 bytes), the counter (8 bytes), and 0 for
    a tombstone, or 1 and the value. Integers are big-endian.
    """
    texts = (_DOMAIN, cluster_id.encode(), topic.encode(), key, certificate)
    head = b"".join(len(text).to_bytes(4, "big") + text for text in texts)
    numbers = partition.to_bytes(4, "big") + counter.to_bytes(_COUNTER_BYTES, "big")
    return head + numbers + (b"\0" if value is None else b"\1" + value)


def read_signature_headers(headers: RecordHeaders) -> SignatureHeaders | Refusal:
    """Return the signature that a record carries; UNSIGNED where it has none of ours."""
    found: dict[str, bytes] = {}
    for name, value in headers:
        if name in _NAMES:
            if name in found or value is None:
                return Refusal.WRONG_SIGNATURE
            found[name] = value
    if not found:
        return Refusal.UNSIGNED
    signature, certificate, counter = (found.get(name, b"") for name in _NAMES)
    if (
        len(counter) != _COUNTER_BYTES
        or not 0 < len(signature) <= MAX_SIGNATURE_BYTES
        or not 0 < len(certificate) <= MAX_CERTIFICATE_BYTES
        or (number := int.from_bytes(counter, "big")) > MAX_COUNTER
    ):
        return Refusal.WRONG_SIGNATURE
    return SignatureHeaders(signature, certificate, number)


def writer_of(
    names: Iterable[str], cluster_id: str, key: bytes, *, tombstone: bool, topic: TopicKind = TopicKind.USAGE
) -> str | None:
    """Return which of a certificate's names may write this record (``agent/3``); None if none may.

    An agent may report for its broker, and take its report back. An operator may give orders, and remove a
    broker's report, but not report for it.
    """
    event = read_event(key, None, topic=topic)
    for name in names:
        match = _URI.fullmatch(name)
        if match is None or match[1] not in ("*", cluster_id):
            continue
        is_operator, owner = match[2] == "operator", match[3]
        match event:
            case TombstoneEvent(broker_id):
                may_write = tombstone if is_operator else owner == str(broker_id)
            case HoldEvent() | BrokerOrderEvent() | DecommissionEvent() | ReliefEvent():
                may_write = is_operator
            case _:
                may_write = False
        if may_write:
            return f"{match[2]}/{owner}"
    return None


def names_agent(names: Iterable[str], broker_id: int) -> bool:
    """Return whether one of a certificate's names is that of a broker's agent, in whatever cluster."""
    matches = (_URI.fullmatch(name) for name in names)
    return any(match is not None and match.groups()[1:] == ("agent", str(broker_id)) for match in matches)


def order_name_wanted(cluster_id: str | None) -> str:
    """Return, for people, the name that a certificate needs to sign an order."""
    return f"kquota://{cluster_id or '<cluster id>'}/operator/<name>"


def next_counter(last: int, seen: int, now_ms: int) -> int:
    """Return the counter of a signer's next record: above all before it, and the time where that is more.

    ``last`` is the signer's own memory, ``seen`` the topic's. So it grows even where both are lost, as long
    as the clock has not gone back, and readers can compare it with the time at which a record was appended.
    They refuse one that is far ahead of it, so that to go on from there would be refused, too.
    """
    latest = now_ms + REPORTS_TOLERANCE_MS
    return max([now_ms, *(known + 1 for known in (last, seen) if known < latest)])
