"""Which brokers are active, asked of the cluster every second; and our own broker, asked regularly for its
settings.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kquota.kafka.admin import AdminConnection, Pending
from kquota.kafka.errors import KafkaFailure
from kquota.kafka.threads import Watch, going_on


@dataclass(frozen=True, slots=True)
class BrokerList:
    """The active brokers: those unfenced and with our listener. `at_monotonic` (seconds) is when the answer
    came.
    """

    ids: frozenset[int]
    cluster_id: str | None
    at_monotonic: float


@dataclass(frozen=True, slots=True)
class BrokerListFailed:
    """The list could not be had; the last one stands as long as its reader trusts it."""

    failure: KafkaFailure
    at_monotonic: float


@dataclass(frozen=True, slots=True)
class OwnBroker:
    """The settings in force of our own broker, from its own answer: it has seen our principal by that."""

    broker_id: int
    settings: Mapping[str, str]
    at_monotonic: float


@dataclass(frozen=True, slots=True)
class OwnBrokerFailed:
    """Our own broker did not answer, or denied its settings. It has still seen our principal when it
    denied.
    """

    broker_id: int
    failure: KafkaFailure
    at_monotonic: float


ClusterEvent = BrokerList | BrokerListFailed | OwnBroker | OwnBrokerFailed


class BrokerWatch(Watch):
    """Asks in a thread of its own and hands every answer and every failure to `sink`.

    The two questions do not wait for each other: a broker that hangs does not delay the list.
    """

    def __init__(
        self,
        admin: AdminConnection,
        sink: Callable[[ClusterEvent], None],
        *,
        own_broker_id: int | None = None,
        brokers_interval_seconds: float = 1.0,
        own_broker_interval_seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admin = admin
        self._sink = sink
        self._own_broker_id = own_broker_id
        self._brokers_interval_seconds = brokers_interval_seconds
        self._own_broker_interval_seconds = own_broker_interval_seconds
        self._clock = clock
        self._own: Pending[Mapping[str, str]] | None = None
        self._own_due = clock()
        super().__init__("kquota-brokers")

    def _run(self) -> None:
        due = self._clock()
        while not self._stop.is_set():
            with going_on("asking for the brokers"):
                self._admin.serve()
                self._ask_own_broker()
                self._ask_cluster()
            due = max(due + self._brokers_interval_seconds, self._clock())
            self._stop.wait(due - self._clock())

    def _ask_cluster(self) -> None:
        found = self._admin.describe_cluster().result()
        now = self._clock()
        if isinstance(found, KafkaFailure):
            self._hand_over(BrokerListFailed(found, now))
        else:
            self._hand_over(BrokerList(found.broker_ids, found.cluster_id, now))

    def _ask_own_broker(self) -> None:
        if self._own_broker_id is None:
            return
        now = self._clock()
        if self._own is not None and self._own.done():
            found = self._own.result()
            self._own = None
            if isinstance(found, KafkaFailure):
                self._hand_over(OwnBrokerFailed(self._own_broker_id, found, now))
            else:
                self._hand_over(OwnBroker(self._own_broker_id, found, now))
        if self._own is None and now >= self._own_due:
            self._own_due = now + self._admin.pause_seconds(self._own_broker_interval_seconds)
            self._own = self._admin.broker_settings(self._own_broker_id)

    def _hand_over(self, event: ClusterEvent) -> None:
        if self._stop.is_set():
            return
        with going_on("the receiver of the broker list"):
            self._sink(event)
