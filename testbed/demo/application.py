"""An application of the demonstration: a producer and a consumer with a topic of their own."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Self

from confluent_kafka.admin import AdminClient

from testbed.demo.load_process import LoadProcess
from testbed.demo.place import Cluster
from testbed.demo.plan import Application
from testbed.loopback import clients
from testbed.loopback.clients import PartitionHealth

# Five requests in flight, as Java producers have them, too. Not by idempotence: librdkafka (2.16.0)
# then keeps a core busy for each broker that holds it, and here these are the cores that brokers and agents
# run on.
_PRODUCER_SETTINGS = ("-X", "max.in.flight=5")


class RunningApplication:
    """Creates the topic, and runs both clients until the end of the block."""

    produced: LoadProcess
    consumed: LoadProcess

    def __init__(self, application: Application, cluster: Cluster, admin: AdminClient) -> None:
        self.topic = application.topic
        self._application = application
        self._cluster = cluster
        self._admin = admin
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        application, cluster = self._application, self._cluster
        clients.create_topic(self._admin, self.topic, application.replicas, application.topic_settings)
        start = partial(
            LoadProcess,
            topic=self.topic,
            configuration=cluster.client_configuration(),
            environment=cluster.environment(),
        )
        producing = [
            *("--record-bytes", str(application.record_bytes)),
            *("--rate-bytes", str(application.producer_bytes_per_second)),
            *_PRODUCER_SETTINGS,
            *("-X", f"queue.buffering.max.kbytes={application.queue_bytes // 1024}"),
        ]
        consuming = ["--rate-bytes", str(application.consumer_bytes_per_second)]
        with ExitStack() as stack:
            log = cluster.path / f"{self.topic}-producer.log"
            self.produced = stack.enter_context(start("produce", log_path=log, options=producing))
            log = cluster.path / f"{self.topic}-consumer.log"
            self.consumed = stack.enter_context(start("consume", log_path=log, options=consuming))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def landed_bytes(self) -> int:
        """The size of all records that its topic has taken in."""
        ends = clients.offsets_by_partition(self._admin, self.topic)
        return sum(ends.values()) * self._application.record_bytes

    def delete_records(self) -> None:
        """Delete what its topic holds."""
        ends = clients.offsets_by_partition(self._admin, self.topic)
        clients.delete_records_before(self._admin, self.topic, ends)

    def partitions(self) -> list[PartitionHealth]:
        """The partitions of its topic.

        Raises:
            KafkaException: no broker answers.
        """
        return clients.partition_health(self._admin, self.topic)
