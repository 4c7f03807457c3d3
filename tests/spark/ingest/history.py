"""A history topic on a real Kafka over TLS, and the counts that the tables must have after it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from kquota.policy.timestamps import format_utc
from kquota_pipeline import delta
from kquota_pipeline.ingest.stream import Source
from kquota_pipeline.tables import INGESTED, Tables
from testbed.loopback.clients import admin_client, create_topic, delete_topic
from testbed.loopback.cluster import KafkaCluster
from tests.spark.ingest.messages import sample

READER = "kquota-pipeline"
HEADERS = [("kquota-signature", b"\x00\xff")]
START = datetime(2024, 11, 1, tzinfo=UTC)
_KINDS = {
    "usage": sample("usage"),
    "decision": sample("decision-sample"),
    "clients": sample("clients"),
    "operator": sample("operator-hold"),
    "topics": sample("topics"),
    "expiry": sample("expiry"),
}


@dataclass
class History:
    """A topic, and its records."""

    cluster: KafkaCluster
    topic: str
    partitions: int = 2
    volumes: int = 2
    sent: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        admin = admin_client(self.cluster.client_configuration())
        create_topic(admin, self.topic, [[1]] * self.partitions)

    def make_again(self) -> None:
        """Delete the topic, and make it again; what was sent to it before still counts."""
        admin = admin_client(self.cluster.client_configuration())
        delete_topic(admin, self.topic)
        create_topic(admin, self.topic, [[1]] * self.partitions)
        del self._made  # it remembers the topic's partitions

    def source(self, **options: object) -> Source:
        """The options of `ingest` to read it: over TLS, with a certificate of its own."""
        return Source(
            bootstrap_servers=self.cluster.internal_bootstrap_servers,
            topic=self.topic,
            options=self.client_properties(),
            **options,  # type: ignore[arg-type]
        )

    def client_properties(self) -> dict[str, str]:
        """A Java client's properties."""
        pem = self.cluster.client_configuration(READER)
        directory = Path(pem["ssl.ca.location"]).parent
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": pem["ssl.ca.location"],
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(directory / f"{READER}.keystore.pem"),
        }

    def send(
        self, kind: str, sequences: Iterable[int], *, at: datetime = START, step_seconds: float = 30
    ) -> None:
        """Send records of a kind, a step apart; the same sequence sent again is a duplicate."""
        template = _KINDS[kind]
        for sequence in sequences:
            moment = format_utc(at + timedelta(seconds=step_seconds * sequence))
            body = template["Body"]
            if kind == "usage":
                volume = body["Volumes"][0]
                volumes = [{**volume, "VolumeName": f"/dev/sd{number}"} for number in range(self.volumes)]
                body = {**body, "SnapshotAt": moment, "Volumes": volumes}
            self._produce({**template, "Sequence": sequence, "At": moment, "Body": body}, sequence)
            self.sent[kind] += 1
        self._flush()

    def send_raw(self, values: Iterable[bytes | None]) -> None:
        """Send malformed records."""
        for number, value in enumerate(values):
            self._producer.produce(self.topic, value, b"1", number % self.partitions, headers=HEADERS)
            self.sent["malformed"] += 1
        self._flush()

    def rows(self) -> dict[str, int]:
        """The rows of each table that come of what was sent."""
        sent = self.sent
        return {
            "records": sent.total(),
            "usage": sent["usage"] * self.volumes,
            "decisions": sent["decision"],
            "clients": 2 * sent["clients"],
            "refusals": 2 * sent["clients"],
            "groups": 2 * sent["clients"],
            "operators": sent["operator"],
            "topics": 3 * sent["topics"],
            "expiry": sent["expiry"],
            "quarantine": sent["malformed"],
        }

    def _produce(self, document: Mapping[str, object], number: int) -> None:
        value = json.dumps(document, separators=(",", ":")).encode()
        partition = number % self.partitions
        while True:
            try:
                self._producer.produce(self.topic, value, b"1", partition, headers=HEADERS)
                return
            except BufferError:
                self._producer.poll(0.1)

    def _flush(self) -> None:
        assert self._producer.flush(120) == 0

    @property
    def _producer(self) -> Producer:
        if not hasattr(self, "_made"):
            configuration = {
                **self.cluster.client_configuration(),
                "linger.ms": 50,
                "compression.type": "lz4",
            }
            self._made = Producer(configuration)
        return self._made


def counts(spark: SparkSession, tables: Tables) -> dict[str, int]:
    """Rows of each table, by its name."""
    return {table.name: delta.read(spark, tables, table).count() for table in INGESTED}
