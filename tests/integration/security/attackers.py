"""Clients of the usage topic and of the orders topic that hold what an attacker may hold."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kquota.formats.record_verifier import ReplayGuard
from kquota.formats.signature_headers import (
    COUNTER_HEADER,
    MAX_CERTIFICATE_BYTES,
    SignatureHeaders,
    signed_bytes,
)
from kquota.kafka.misplaced import partition_of
from kquota.trust.signer import FileSigner, SigningFiles, certificate_in
from kquota.trust.signing import RecordSigner
from testbed.loopback.certificates import CertificateAuthority, Identity
from testbed.loopback.node import node_name
from testbed.loopback.plug_in import OPERATOR, agent_name
from tests.integration.spine.fleet import ORDERS_TOPIC, USAGE_TOPIC, Fleet
from tests.integration.spine.test_hostile_records import report
from tests.unit.trust.issuing import twisted

PARTITIONS: Mapping[str, int] = {USAGE_TOPIC: 2, ORDERS_TOPIC: 1}
ADMINISTRATOR, STRANGER, GRANTED = "administrator", "stranger", "granted"
THIEF, TYPED = "operator/jane", "bob"
"""The operator whose key was stolen, and the name that the thief types."""
_MARK = "Forged"  # a field of forged reports that no reader knows


def name_of(writer: str) -> str:
    """Return the name of a writer (``agent/1``) in certificates."""
    return f"kquota://*/{writer}"


class Forger:
    """Signs any records with one certificate; a twisted one has its signature written otherwise."""

    def __init__(self, identity: Identity, *, is_twisted: bool = False) -> None:
        self._is_twisted = is_twisted
        self._signer = FileSigner(SigningFiles(identity.certificate, identity.key, identity.certificate))
        self._seals = {topic: RecordSigner(self._signer, topic, ReplayGuard()) for topic in PARTITIONS}

    def headers(
        self,
        key: bytes,
        value: bytes | None,
        cluster_id: str,
        topic: str = USAGE_TOPIC,
        *,
        partition: int | None = None,
        counter: int | None = None,
    ) -> list[tuple[str, bytes]]:
        """Return the headers of a record; as a genuine writer would, without the last two."""
        if partition is None and counter is None and not self._is_twisted:
            return list(self._seals[topic].headers(key, value, cluster_id, PARTITIONS[topic]))
        place = partition_of(key, PARTITIONS[topic]) if partition is None else partition
        number = round(time.time() * 1000) if counter is None else counter
        certificate = self._signer.certificate
        if self._is_twisted:
            certificate = twisted(certificate)
        message = signed_bytes(cluster_id, topic, place, key, value, number, certificate)
        return list(SignatureHeaders(self._signer.sign(message), certificate, number).to_headers())


class Attacker:
    """Writes records in each way that it can: each of its forgers signs one, None writes it unsigned."""

    def __init__(self, armoury: Armoury, client: str, forgers: Sequence[Forger | None]) -> None:
        self.written: set[tuple[str, str, int]] = set()
        """The topics, keys and partitions of the records that Kafka took."""
        self.denied = dict.fromkeys(PARTITIONS, 0)
        self.records = dict.fromkeys(PARTITIONS, 0)
        self.armoury, self._fleet, self._forgers = armoury, armoury.fleet, forgers
        own = {"log_level": 0, "partitioner": "murmur2_random"}
        self._producer = Producer({**self._fleet.cluster.client_configuration(client), **own})

    def write(
        self,
        key: str,
        value: Mapping[str, Any] | bytes | None,
        topic: str = USAGE_TOPIC,
        *,
        partition: int | None = None,
        counter: int | None = None,
    ) -> None:
        """Write a record; ``flush`` waits until all are in the topic, or refused by Kafka."""
        raw = json.dumps(value).encode() if isinstance(value, Mapping) else value
        for forger in self._forgers:
            cluster_id = self._fleet.cluster.cluster_id
            signed = (
                []
                if forger is None
                else forger.headers(
                    key.encode(), raw, cluster_id, topic, partition=partition, counter=counter
                )
            )
            self.append(key, raw, signed, topic, partition)

    def order(self, key: str, value: Mapping[str, Any] | bytes | None) -> None:
        """Give an order on both topics."""
        for topic in PARTITIONS:
            self.write(key, value, topic)

    def append(
        self,
        key: str,
        value: bytes | None,
        headers: list[tuple[str, bytes]],
        topic: str = USAGE_TOPIC,
        partition: int | None = None,
    ) -> None:
        """Write a record with these headers."""
        self.records[topic] += 1
        place = -1 if partition is None else partition
        try:
            self._producer.produce(topic, value, key, place, on_delivery=self._delivered, headers=headers)
        except KafkaException as refused:  # the client knows by now that it is denied
            self._deny(refused.args[0], topic)
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until Kafka has answered all."""
        assert self._producer.flush(60) == 0

    def report(self, broker_id: int, *, full: bool, **changes: Any) -> dict[str, Any]:
        """Return a report of now, from the instance of that broker's agent."""
        instance = json.loads(self.genuine(broker_id)[-1].value() or b"")["InstanceId"]
        changes = {"InstanceId": instance, _MARK: True, **changes}
        return report(self._fleet, age_seconds=0, full=full, **changes)

    def above(self, broker_id: int) -> int:
        """Return a counter above that of each record of the broker: its agent's may be ahead of the clock."""
        key = str(broker_id).encode()
        seen = (
            dict(one.headers() or ()).get(COUNTER_HEADER) for one in self._fleet.records() if one.key() == key
        )
        return max((int.from_bytes(value, "big") for value in seen if value), default=0) + 1

    def genuine(self, broker_id: int) -> list[Message]:
        """Return the reports that the broker's agent has written."""
        key, mark = str(broker_id).encode(), f'"{_MARK}"'.encode()
        return [
            one
            for one in self._fleet.records()
            if one.key() == key and b'"InstanceId"' in (value := one.value() or b"") and mark not in value
        ]

    def orders(self, key: str) -> list[Message]:
        """Return the records of an order, its ends included."""
        return [one for one in self._fleet.records(ORDERS_TOPIC) if one.key() == key.encode()]

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        topic = str(message.topic())
        if error is None:
            self.written.add((topic, (message.key() or b"").decode(), message.partition() or 0))
            return
        self._deny(error, topic)

    def _deny(self, error: KafkaError, topic: str) -> None:
        assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED, error
        self.denied[topic] += 1


class Armoury:
    """Makes what attackers hold, from the authority of a fleet, and from another one."""

    def __init__(self, fleet: Fleet, directory: Path) -> None:
        self.fleet = fleet
        self._authority = fleet.cluster.authority
        self._other = CertificateAuthority(directory / "other-authority")
        self.revoked = directory / "revoked"
        """The list of revoked certificates, which all agents read."""
        self.revoked.touch()
        self.identity = cache(self._identity)
        self.revoked_forgers = cache(self._revoke)
        self.forger: Callable[[str], Forger] = cache(lambda writer: Forger(self.identity(writer)))

    def attacker(self, kind: str) -> Attacker:
        """Return one of docs/attacks.yml."""
        stolen = agent_name(1)
        match kind:
            case "stranger":
                return Attacker(self, STRANGER, [None])
            case "granted":
                return Attacker(self, GRANTED, [None])
            case "agent":
                return Attacker(self, stolen, [None, self.forger("agent/1")])
            case "revoked":
                return Attacker(self, stolen, [None, *self.revoked_forgers()])
            case "expired":
                lifetime = timedelta(minutes=-1)
                return Attacker(self, stolen, [Forger(self._issue(self._authority, "agent/3", lifetime))])
            case "foreign":
                names = "agent/3", THIEF
                return Attacker(self, stolen, [Forger(self._issue(self._other, name)) for name in names])
            case "broker":
                return Attacker(self, node_name(1), [None])
            case "operator":
                return Attacker(self, OPERATOR, [self.forger(THIEF), None])
            case "issuer":
                return Attacker(self, OPERATOR, [self.forger("operator/invented"), None])
        raise LookupError(kind)

    def forgeries(self, writer: str, many: int) -> Iterator[list[tuple[str, bytes]]]:
        """Yield headers of as many records, each with a new certificate of many names."""
        names = [name_of(writer), *(f"name:{number}" for number in range(700))]
        identity = self._other.issue(f"forged-{writer.replace('/', '-')}", uris=names)
        certificate = FileSigner(
            SigningFiles(identity.certificate, identity.key, identity.certificate)
        ).certificate
        assert MAX_CERTIFICATE_BYTES / 2 < len(certificate) <= MAX_CERTIFICATE_BYTES
        for _ in range(many):
            forged = certificate[:-16] + os.urandom(16)  # of the authority's signature
            yield list(SignatureHeaders(os.urandom(64), forged, round(time.time() * 1000)).to_headers())

    def owner(self, writer: str) -> Attacker:
        """Return a genuine writer, as a client that may do anything with the topics."""
        return Attacker(self, ADMINISTRATOR, [self.forger(writer)])

    def _revoke(self) -> tuple[Forger, ...]:
        """Issue a certificate that is stolen, and revoke it: agents that start from now on know."""
        identity = self._authority.issue("revoked-agent-1", uris=[name_of("agent/1")])
        replacement = self.revoked.with_suffix(".new")
        replacement.write_text(certificate_in(identity.certificate).fingerprint, "utf-8")
        replacement.replace(self.revoked)
        return Forger(identity), Forger(identity, is_twisted=True)

    def _identity(self, writer: str) -> Identity:
        return self._issue(self._authority, writer)

    @staticmethod
    def _issue(
        authority: CertificateAuthority, writer: str, lifetime: timedelta = timedelta(days=1)
    ) -> Identity:
        kind = "expired" if lifetime < timedelta(0) else "signer"
        return authority.issue(
            f"{kind}-{writer.replace('/', '-')}", uris=[name_of(writer)], lifetime=lifetime
        )
