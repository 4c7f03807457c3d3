"""Signers and authorities without algorithms, for the tests of this folder: a signature is an HMAC."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from kquota.formats.record_verifier import RecordVerifier
from kquota.formats.records import TopicKind, TopicRecord
from kquota.formats.signature_headers import SignatureHeaders, SigningMode, signed_bytes
from kquota.policy.events import Event
from tests.unit.policy.situations import NOW, Record, raw

CLUSTER, TOPIC = "bm9uZXNlbnNlLWNsdXN0ZQ", "__kquota_volume_usage"
ORDERS_TOPIC = "__kquota_orders"
NOW_MS = round(NOW.timestamp() * 1000)


@dataclass(frozen=True)
class Signer:
    """The owner of a certificate with these names; ``authority`` is who issued it."""

    names: Sequence[str]
    authority: str = "ours"
    not_before_ms: int = 0
    not_after_ms: int = 2 * NOW_MS

    @property
    def certificate(self) -> bytes:
        return json.dumps([*self.names, self.authority, self.not_before_ms, self.not_after_ms]).encode()

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.certificate).hexdigest()

    def sign(self, message: bytes) -> bytes:
        return hmac.digest(self.certificate, message, hashlib.sha256)

    def claim(
        self,
        key: bytes,
        value: bytes | None,
        counter: int,
        *,
        partition: int = 0,
        cluster_id: str = CLUSTER,
        topic: str = TOPIC,
    ) -> SignatureHeaders:
        message = signed_bytes(cluster_id, topic, partition, key, value, counter, self.certificate)
        return SignatureHeaders(self.sign(message), self.certificate, counter)

    def record(
        self,
        key: bytes,
        value: bytes | None,
        counter: int = NOW_MS,
        *,
        partition: int = 0,
        appended_ms: int | None = NOW_MS,
        topic: TopicKind = TopicKind.USAGE,
    ) -> TopicRecord:
        name = TOPIC if topic is TopicKind.USAGE else ORDERS_TOPIC
        claim = self.claim(key, value, counter, partition=partition, topic=name)
        return TopicRecord(key, value, appended_ms, partition, claim.to_headers(), topic)


def agent(broker_id: int | str, cluster: str = "*", **fields: object) -> Signer:
    return Signer((f"kquota://{cluster}/agent/{broker_id}",), **fields)  # type: ignore[arg-type]


def operator(name: str = "jane", cluster: str = "*") -> Signer:
    return Signer((f"kquota://{cluster}/operator/{name}",))


@dataclass(frozen=True)
class _Certificate:
    signer: Signer

    @property
    def fingerprint(self) -> str:
        return self.signer.fingerprint

    @property
    def names(self) -> Sequence[str]:
        return self.signer.names

    def is_valid_at(self, at: datetime) -> bool:
        return self.signer.not_before_ms <= at.timestamp() * 1000 <= self.signer.not_after_ms

    def verifies(self, signature: bytes, message: bytes) -> bool:
        return hmac.compare_digest(signature, self.signer.sign(message))


class Authorities:
    """Trusts the authority ``ours``, and counts how often it is asked."""

    problems = ()

    def __init__(self) -> None:
        self.asked = 0
        self._known: set[bytes] = set()
        self.revoked_ones: frozenset[str] = frozenset()

    def revoked(self) -> frozenset[str]:
        return self.revoked_ones

    def knows(self, der: bytes) -> bool:
        return der in self._known

    def revoke(self, *signers: Signer) -> None:
        self.revoked_ones = frozenset(signer.fingerprint for signer in signers)

    def certificate(self, der: bytes) -> _Certificate | None:
        self.asked += 1
        self._known.add(der)
        try:
            *names, authority, not_before_ms, not_after_ms = json.loads(der)
        except ValueError:
            return None
        signer = Signer(tuple(names), authority, not_before_ms, not_after_ms)
        return _Certificate(signer) if authority == "ours" and signer.certificate == der else None


def verifier(
    mode: SigningMode = SigningMode.REQUIRED, authorities: Authorities | None = None, topic: str = TOPIC
) -> RecordVerifier:
    admits = RecordVerifier(mode, topic, authorities or Authorities())
    admits.cluster_id = CLUSTER
    return admits


def signed_events(records: Iterable[Record], now: datetime) -> Iterator[Event]:
    """Read these records where only signed ones count, each signed by who may write it, and appended now."""
    now_ms = round(now.timestamp() * 1000)
    admits = {TopicKind.USAGE: verifier(), TopicKind.ORDERS: verifier(topic=ORDERS_TOPIC)}
    for number, (key, value) in enumerate(records):
        name = key.encode() if isinstance(key, str) else key or b""
        content = raw(value)
        topic = TopicKind.USAGE if name.isdigit() else TopicKind.ORDERS
        signer = agent(name.decode()) if name.isdigit() else operator(_author_of(content))
        appended_ms = None if name.isdigit() else now_ms
        record = signer.record(name, content, now_ms + number, appended_ms=appended_ms, topic=topic)
        event = admits[topic].read(record, now)
        assert event is not None
        yield event


def _author_of(value: bytes | None) -> str:
    """Return who an order says has given it: with a signature, the signer is."""
    try:
        return str(json.loads(value or b"{}").get("Actor", "jane"))
    except (ValueError, AttributeError):
        return "jane"
