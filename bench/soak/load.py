"""The load of the soak: producers with books on forty topics, and many more that only write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Self

from bench.ledger.audit import Account
from bench.ledger.campaign import TOPIC_SETTINGS, await_records, replicas, settled
from bench.ledger.figures import Audited, Trouble
from bench.ledger.producers import KINDS, Kind, LedgerProducer, compiled
from bench.loads import RECORD_BYTES, Client, Delivery, JavaLoadClass, Load, topics
from kquota.policy.decision import Scope
from testbed.demo.loopback_stage import BROKER_IDS, LoopbackStage
from testbed.loopback.clients import admin_client, create_topic, delete_topic
from testbed.loopback.volumes import MIB

LEDGERS_OF_A_KIND = 1
FLOODS = 100
"""Most clients are connected to two brokers: the third one is killed again and again, and seldom leads."""
LEDGER_RATE_BYTES, FLOOD_RATE_BYTES = 100_000.0, 2e6
_KEPT_BYTES = 4 * MIB


class Ledgers:
    """The accounts of all rounds, by kind of producer."""

    def __init__(self, stage: LoopbackStage, report: Callable[[str], None]) -> None:
        self._stage, self._report = stage, report
        self._java = compiled(stage.cluster.runtime, stage.cluster.path)
        self._accounts: dict[Kind, Account] = {}
        self._errors: dict[Kind, Counter[str]] = {kind: Counter() for kind in KINDS}
        self._running: list[LedgerProducer] = []
        self._admin = admin_client(stage.cluster.client_configuration())

    @property
    def topics(self) -> int:
        """How many a round has."""
        return len(self._running)

    def begin(self, number: int) -> None:
        """Start a round's producers on topics of their own; returns when all have records acknowledged."""
        for kind in KINDS:
            for place in range(LEDGERS_OF_A_KIND):
                topic = f"{kind.topic}-{LEDGERS_OF_A_KIND * number + place + 1}"
                create_topic(self._admin, topic, replicas(first=place), TOPIC_SETTINGS)
                producer = LedgerProducer(
                    kind, self._stage.cluster, self._java, LEDGER_RATE_BYTES, {}, topic=topic
                )
                self._running.append(producer)
        await_records(self._running)

    def end(self) -> None:
        """Stop them, compare books and records, and delete the topics."""
        await_records(self._running)
        configuration = self._stage.cluster.client_configuration()
        for done, (producer, book, account) in enumerate(settled(self._running, configuration), start=1):
            kind = producer.kind
            self._accounts[kind] = self._accounts[kind] + account if kind in self._accounts else account
            self._errors[kind] += book.errors
            delete_topic(self._admin, producer.topic)
            producer.remove()
            if done % 10 == 0:
                self._report(f"{done} of {len(self._running)} books compared")
        self._running.clear()

    def audited(self) -> list[Audited]:
        """The sum of each kind."""
        return [
            Audited(
                kind.client,
                kind.delivery,
                True,
                Scope.VOLUME.value,
                Trouble.FAULTS_BY_LOT,
                None,
                account,
                dict(self._errors[kind]),
            )
            for kind, account in self._accounts.items()
        ]


class Flood:
    """Producers without books, each with a topic that keeps only its end; a context manager."""

    def __init__(self, stage: LoopbackStage) -> None:
        self._stage = stage
        self.topics = FLOODS
        self.landed_bytes = self.failed_records = 0
        """Once the block has ended."""

    def __enter__(self) -> Self:
        cluster = self._stage.cluster
        admin = admin_client(cluster.client_configuration())
        settings = {"retention.bytes": str(_KEPT_BYTES), "segment.bytes": str(_KEPT_BYTES // 2)}
        for place, topic in enumerate(topics(FLOODS)):
            # A partition on each broker: clients end connections that they have not used for nine minutes.
            create_topic(admin, topic, replicas(len(BROKER_IDS), place), settings)
        self._load = Load(
            cluster,
            Client.JAVA,
            FLOODS,
            Delivery.USUAL,
            FLOOD_RATE_BYTES,
            JavaLoadClass(cluster.runtime, cluster.path),
            cluster.path / "flood.log",
        )
        return self

    def __exit__(self, *_error: object) -> None:
        results = self._load.stop()
        self.landed_bytes, self.failed_records = (
            results.acknowledged_records * RECORD_BYTES,
            results.failed_records,
        )
