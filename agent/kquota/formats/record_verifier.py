"""Which records of the usage topic count, by their signatures, and in which order those of one writer do.

A refused record changes nothing: the record before it goes on counting. So a stranger who may write to the
topic can neither displace a broker's report nor give an order. A stranger's record can have compaction remove
the report; an agent that starts then waits for the broker's next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from kquota.formats.records import TopicRecord, read_event, read_record
from kquota.formats.signature_headers import (
    ORDERS_TOLERANCE_MS,
    REPORTS_TOLERANCE_MS,
    Authorities,
    SignatureHeaders,
    SigningMode,
    read_signature_headers,
    signed_bytes,
    writer_of,
)
from kquota.formats.strict_json import printable
from kquota.policy.events import Event, IgnoredEvent, Refusal, RefusedEvent, WrongTopicEvent
from kquota.policy.timestamps import from_epoch_ms


@dataclass(frozen=True, slots=True)
class Signed:
    """A verified signature: its writer (``agent/3``), the writer's counter, its certificate's fingerprint."""

    writer: str
    counter: int
    certificate: str = field(default="", compare=False)

    @property
    def is_agents(self) -> bool:
        """Whether the writer is an agent, not an operator."""
        return self.writer.startswith("agent/")


class Turn(Enum):
    """The place of a record among those of its writer."""

    NEXT = "next"
    REPEATED = "repeated"  # it was read before: no news, and no fault
    REPLAYED = "replayed"  # a later one was read before


@dataclass(frozen=True, slots=True)
class KeptCounter:
    """The highest counter of a writer of a key, as an agent keeps it over restarts."""

    key: str
    writer: str
    counter: int
    certificate: str


class ReplayGuard:
    """The highest counter of each writer, by key.

    By key, because the records of a key are in one partition, and those of others have no order with them.
    While the topic is read again, the counters of before are the least that count. A writer's record with
    that very counter counts only if no other writer's came after it: else it was withdrawn by that one, and
    is on the topic because a copy was appended.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._highest: dict[bytes, dict[str, int]] = {}
        self._floors: dict[bytes, dict[str, int]] = {}
        # The certificate of each writer's last record, by key; the last one is of the key's last record.
        self._certificates: dict[bytes, dict[str, str]] = {}
        self._last_writers: dict[bytes, str] = {}
        self.changes = 0
        """Grows whenever ``kept`` would return something else."""

    def highest(self, key: bytes) -> int:
        """Return the highest counter that is known of a key; 0 for none."""
        known = (*self._highest.get(key, {}).values(), *self._floors.get(key, {}).values())
        return max(known, default=0)

    def highest_read(self, key: bytes) -> int:
        """Return the highest counter of a key in this reading of the topic; -1 for none."""
        return max(self._highest.get(key, {}).values(), default=-1)

    def turn(self, key: bytes, signed: Signed) -> Turn:
        """Take in a record's counter, and return the record's place."""
        highest = self._highest.setdefault(key, {})
        last = highest.get(signed.writer, -1)
        if signed.counter < last:
            return Turn.REPLAYED
        if signed.counter == last or self._is_of_before(key, signed):
            return Turn.REPEATED
        self.changes += 1
        highest[signed.writer] = signed.counter
        certificates = self._certificates.setdefault(key, {})
        certificates.pop(signed.writer, None)
        certificates[signed.writer] = signed.certificate
        return Turn.NEXT

    def _is_of_before(self, key: bytes, signed: Signed) -> bool:
        floor = self._floors.get(key, {}).get(signed.writer)
        if floor is None:
            return False
        is_last = self._last_writers.get(key) == signed.writer
        return signed.counter < floor or (signed.counter == floor and not is_last)

    def kept(self, since_ms: int, most: int) -> tuple[KeptCounter, ...]:
        """Return the newest counters, a key's last writer as its last; ``most``, or more of the same time."""
        known = [
            KeptCounter(key.decode("ascii", "replace"), writer, counter, certificate)
            for key, certificates in self._certificates.items()
            for writer, certificate in certificates.items()
            if (counter := self._highest_of(key, writer)) >= since_ms
        ]
        oldest = min(sorted(one.counter for one in known)[-most:], default=0)
        return tuple(one for one in known if one.counter >= oldest)

    def recall(self, kept: Iterable[KeptCounter]) -> None:
        """Take in the counters of before a restart; the topic has not been read yet."""
        for one in kept:
            key = one.key.encode()
            self._floors.setdefault(key, {})[one.writer] = one.counter
            self._certificates.setdefault(key, {})[one.writer] = one.certificate
            self._last_writers[key] = one.writer

    def _highest_of(self, key: bytes, writer: str) -> int:
        known = self._highest.get(key, {}), self._floors.get(key, {})
        return max(counters.get(writer, 0) for counters in known)

    def revoke(self, revoked: frozenset[str]) -> list[bytes]:
        """Forget the counters of revoked certificates; return the keys whose last record has one of these.

        A thief's counter may be far ahead: that of its writer's next certificate must not look old.
        """
        keys = []
        for key, certificates in self._certificates.items():
            gone = [writer for writer, certificate in certificates.items() if certificate in revoked]
            if gone and gone[-1] == next(reversed(certificates)):
                keys.append(key)
            self.changes += len(gone)
            for writer in gone:
                for known in (certificates, self._highest.get(key, {}), self._floors.get(key, {})):
                    known.pop(writer, None)
        return keys

    def begin_again(self) -> None:
        """Take in that the topic is read from its beginning again."""
        self.reached_end()
        self._floors, self._highest = self._highest, {}
        self._last_writers = {
            key: next(reversed(known)) for key, known in self._certificates.items() if known
        }

    def reached_end(self) -> None:
        """Take in that the topic has been read to its end."""
        for key, floors in self._floors.items():
            highest = self._highest.setdefault(key, {})
            for writer, floor in floors.items():
                highest[writer] = max(floor, highest.get(writer, floor))
        self._floors = {}


class RecordVerifier:
    """Judges the records of one topic. ``cluster_id`` has to be set before the first one."""

    def __init__(
        self, mode: SigningMode, topic: str, authorities: Authorities, counters: ReplayGuard | None = None
    ) -> None:
        """Begin with the counters of an earlier one, or with none."""
        self.cluster_id: str | None = None
        self.counters = ReplayGuard() if counters is None else counters
        self.mode, self._topic, self.authorities = mode, topic, authorities

    def of_topic(self, topic: str, counters: ReplayGuard | None = None) -> RecordVerifier:
        """Return the judge of another topic's records, with the same authorities."""
        return RecordVerifier(self.mode, topic, self.authorities, counters)

    def read(self, record: TopicRecord, now: datetime) -> Event | None:
        """Return the event of a record that comes after all others; None for one that was read before."""
        verdict = self.judge(record, now)
        return self.in_turn(record, verdict, event_of(record, verdict))

    def judge(self, record: TopicRecord, now: datetime) -> Signed | Refusal | None:
        """Return whether a record counts, its place in its writer's order aside; None: it does, unsigned.

        The certificate has to be valid at the time at which a broker appended the record, not now: a report
        goes on counting after its broker is gone, and silence releases nothing.
        """
        if isinstance(read_event(record.key, None, topic=record.topic), IgnoredEvent | WrongTopicEvent):
            return None
        headers = read_signature_headers(record.headers)
        if headers is Refusal.UNSIGNED and self.mode is SigningMode.ACCEPT:
            return None
        if isinstance(headers, Refusal):
            return headers
        certificate = self.authorities.certificate(headers.certificate)
        if certificate is None:
            return Refusal.UNKNOWN_AUTHORITY
        if certificate.fingerprint in self.authorities.revoked():
            return Refusal.REVOKED
        if not certificate.is_valid_at(from_epoch_ms(record.appended_ms) or now):
            return Refusal.EXPIRED
        key, value, cluster_id = record.key or b"", record.value, self.cluster_id or ""
        writer = writer_of(certificate.names, cluster_id, key, tombstone=value is None, topic=record.topic)
        if writer is None:
            return Refusal.NOT_FOR_KEY
        place = cluster_id, self._topic, record.partition
        message = signed_bytes(*place, key, value, headers.counter, headers.certificate)
        if not certificate.verifies(headers.signature, message):
            return Refusal.WRONG_SIGNATURE
        signed = Signed(writer, headers.counter, certificate.fingerprint)
        return _untimely(signed, record.appended_ms, now) or signed

    def in_turn(
        self, record: TopicRecord, verdict: Signed | Refusal | None, event: Event | None
    ) -> Event | None:
        """Return the event of a judged record in the topic's order; None for one that was read before."""
        if event is None or not isinstance(verdict, Signed):
            return event
        match self.counters.turn(record.key or b"", verdict):
            case Turn.NEXT:
                return event
            case Turn.REPEATED:
                return None
            case Turn.REPLAYED:
                return event_of(record, Refusal.REPLAYED)


def _untimely(signed: Signed, appended_ms: int | None, now: datetime) -> Refusal | None:
    """Return why a counter can't be the time at which a record was signed; None where it can."""
    tolerance_ms = REPORTS_TOLERANCE_MS if signed.is_agents else ORDERS_TOLERANCE_MS
    latest_ms = round(now.timestamp() * 1000) if appended_ms is None else appended_ms
    if signed.counter - latest_ms > tolerance_ms:
        return Refusal.AHEAD
    late = appended_ms is not None and appended_ms - signed.counter > tolerance_ms
    return Refusal.REPLAYED if late else None


@dataclass(frozen=True, slots=True)
class Claimed:
    """Whose certificate a record has, None for none, and whether its counter is the highest up to it."""

    certificate: bytes | None
    is_highest: bool


def claimed(records: Sequence[TopicRecord], counters: ReplayGuard) -> list[Claimed]:
    """Return what each record claims, compared with those of its key before it.

    A record with the highest counter, once verified, is no replay of one before it with its certificate: they
    need not be verified at all. Of other certificates' records the counters have to be known.
    """
    highest: dict[bytes, int] = {}
    found = []
    for record in records:
        headers, key = read_signature_headers(record.headers), record.key or b""
        if not isinstance(headers, SignatureHeaders):
            found.append(Claimed(None, is_highest=True))
            continue
        before = highest.get(key)
        if before is None:
            before = counters.highest_read(key)
        found.append(Claimed(headers.certificate, is_highest=headers.counter > before))
        highest[key] = max(headers.counter, before)
    return found


def event_of(record: TopicRecord, verdict: Signed | Refusal | None) -> Event:
    """Return the meaning of a judged record."""
    if isinstance(verdict, Refusal):
        key = record.key or b""
        return RefusedEvent(printable(key.decode("ascii", "replace")), verdict)
    if verdict is None:
        return read_record(record)
    return read_record(record, verdict.writer, verdict.certificate)
