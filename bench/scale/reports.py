"""The reports of a large cluster: as many brokers as are wanted, all over the soft limit or a few of them."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Self

from confluent_kafka import KafkaError, Message, Producer

from kquota.formats.record_verifier import ReplayGuard
from kquota.formats.records import REGULAR
from kquota.formats.usage_format import usage_to_document
from kquota.kafka.delivery import Headers
from kquota.kafka.documents import to_json
from kquota.kafka.producer import PRODUCER_PROPERTIES
from kquota.policy.limits import Limit, LimitType
from kquota.policy.usage import UsageRecord
from kquota.policy.volume import Volume
from kquota.trust.signer import FileSigner, SigningFiles
from kquota.trust.signing import RecordSigner
from testbed.loopback.certificates import CertificateAuthority

CAPACITY_BYTES = 4_000_000_000_000
USUAL_FREE_RATIO = 0.12  # between the limits: every volume has a vote
CALM_FREE_RATIO = 0.5
NAMING_BROKERS, TOPICS_EACH, ALL_TOPICS = 40, 200, 4000
"""With the scope of the volume: brokers with a volume over its soft limit, and the topics that it names."""
_SOFT, _HARD = (Limit.of(LimitType.MIN_FREE_PERCENTAGE, percent) for percent in (15, 5))
_APPLIED = {"State": "THROTTLE", "Factor": 0.7, "Sequence": 1, "Mechanism": "governor"}


def scoped_report(index: int, broker_id: int, volumes: int, at: datetime, free_ratio: float) -> bytes:
    """A record of a cluster in which the first brokers each have one volume over its soft limit."""
    if index >= NAMING_BROKERS:
        return report(broker_id, volumes, at, free_ratio=CALM_FREE_RATIO)
    numbers = sorted((53 * index + step) % ALL_TOPICS for step in range(TOPICS_EACH))
    topics = tuple(f"orders-of-region-{number:04}" for number in numbers)
    return report(broker_id, volumes, at, free_ratio=free_ratio, topics=topics)


def report(
    broker_id: int,
    volumes: int,
    at: datetime,
    *,
    free_ratio: float = USUAL_FREE_RATIO,
    topics: tuple[str, ...] | None = None,
) -> bytes:
    """A usage record as the agent writes it; each volume's figures differ a little.

    With topics the first volume names them, and the others have space enough.
    """
    lower_bytes = 4096 * 97 * broker_id
    consumed_bytes = round(CAPACITY_BYTES * (1 - free_ratio)) - lower_bytes
    others_bytes = consumed_bytes if topics is None else round(CAPACITY_BYTES * CALM_FREE_RATIO) - lower_bytes
    record = UsageRecord(
        at,
        tuple(
            Volume(
                f"/dev/nvme{number}n1",
                CAPACITY_BYTES,
                (others_bytes if number else consumed_bytes) - 4096 * number,
                None,
                volume_id=str(uuid.UUID(int=broker_id * 1000 + number)),
                log_dirs=(f"/var/lib/kafka/data-{number}",),
                mount_point=f"/var/lib/kafka/data-{number}",
                topics=None if number else topics,
            )
            for number in range(volumes)
        ),
        _HARD,
        _SOFT,
        instance_id=str(uuid.UUID(int=broker_id)),
        sequence=1,
    )
    return to_json(usage_to_document(record, applied=_APPLIED))


Sign = Callable[[int, bytes], Headers]
"""Returns the headers that sign a broker's report."""


def signatures(
    authority: CertificateAuthority, cluster_id: str, topic: str, partitions: int, broker_ids: range
) -> Sign:
    """Give each broker's agent a certificate, and sign as these agents do."""
    record_signers = {}
    for broker_id in broker_ids:
        own = authority.issue(f"signer-{broker_id}", uris=[f"kquota://*/agent/{broker_id}"])
        files = SigningFiles(own.certificate, own.key, authority.certificate)
        record_signers[broker_id] = RecordSigner(FileSigner(files, broker_id), topic, ReplayGuard())
    return lambda broker_id, value: record_signers[broker_id].headers(
        str(broker_id).encode(), value, cluster_id, partitions
    )


def unsigned(_broker_id: int, _value: bytes) -> Headers:
    """Return no headers."""
    return ()


def header_bytes(headers: Headers) -> int:
    """Return the bytes of names and values."""
    return sum(len(name) + len(content) for name, content in headers)


class Reporters:
    """The agents of all those brokers at once: each reports every `interval_seconds`, evenly spread.

    A context manager; when its block begins, every broker has reported once.
    """

    def __init__(
        self,
        configuration: Mapping[str, str],
        topic: str,
        broker_ids: range,
        volumes: int,
        interval_seconds: float,
        *,
        scoped: bool = False,
        sign: Sign = unsigned,
    ) -> None:
        self.record_bytes, self.signature_bytes = 0, 0
        self._scoped, self._sign = scoped, sign
        self._topic, self._ids, self._volumes = topic, broker_ids, volumes
        self._interval_seconds = interval_seconds
        self._failures: list[KafkaError] = []
        self._free_ratio: dict[int, float] = {}
        own = {"linger.ms": "0", "compression.type": "lz4", "log_level": 0}  # as the agent's publisher
        self._producer = Producer({**PRODUCER_PROPERTIES, **configuration, **own})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reporters", daemon=True)

    def __enter__(self) -> Self:
        for broker_id in self._ids:
            self.send(broker_id)
        self.flush()
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()
        self.flush()

    def change(self, broker_id: int, *, free_ratio: float) -> None:
        """Report at once that a broker's volumes have so much free, and from then on."""
        self._free_ratio[broker_id] = free_ratio
        self.send(broker_id)

    def send(self, broker_id: int, *mark: tuple[str, bytes]) -> None:
        """Report for one broker; the mark is a further header."""
        free_ratio = self._free_ratio.get(broker_id, USUAL_FREE_RATIO)
        now = datetime.now(UTC)
        if self._scoped:
            value = scoped_report(self._ids.index(broker_id), broker_id, self._volumes, now, free_ratio)
        else:
            value = report(broker_id, self._volumes, now, free_ratio=free_ratio)
        headers = self._sign(broker_id, value)
        self.record_bytes = max(self.record_bytes, len(value))
        self.signature_bytes = max(self.signature_bytes, header_bytes(headers))
        self._producer.produce(
            self._topic,
            key=str(broker_id),
            value=value,
            headers=[*mark, *headers],
            on_delivery=self._delivered,
        )

    def flush(self) -> None:
        """Wait until all is delivered.

        Raises:
            RuntimeError: something was not.
        """
        left = self._producer.flush(60)
        if left or self._failures:
            raise RuntimeError(f"{left} reports were not delivered; failures: {self._failures[:3]}")

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failures.append(error)

    def _run(self) -> None:
        pause_seconds = self._interval_seconds / len(self._ids)
        due = time.monotonic()
        for broker_id in itertools.cycle(self._ids):
            due += pause_seconds
            if self._stop.wait(max(0.0, due - time.monotonic())):
                return
            self.send(broker_id, REGULAR)
            self._producer.poll(0)
