"""An Admin client ends where its owner ends it, not where the garbage collector finds it."""

from __future__ import annotations

import subprocess
import sys

from confluent_kafka.admin import AdminClient

from kquota.kafka.admin import AdminConnection
from kquota.kafka.client import end_admin_client
from kquota.kafka.config import ClientProperties
from kquota.kafka.errors import KafkaFailure

NOWHERE = ClientProperties({"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}, 1)
# librdkafka answers on a thread of its own. There the collector finds the last reference to the client.
COLLECTED_BY_LIBRDKAFKA = """
import gc, time
from kquota.kafka.admin import AdminConnection
from kquota.kafka.config import ClientProperties
nowhere = ClientProperties({"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}, 1)
gc.disable()
for _ in range(3):
    connection = AdminConnection(nowhere, request_timeout_seconds=0.2)
    pending = connection.broker_settings(1)
    pending.future.add_done_callback(lambda _future: gc.collect())
    cycle = [pending]
    cycle.append(cycle)
    connection.close()
    del connection, pending, cycle
    time.sleep(0.5)
print("alive")
"""


def test_a_connection_that_is_closed_with_a_request_under_way_does_not_end_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLLECTED_BY_LIBRDKAFKA],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


def test_a_request_under_way_fails_at_once_when_the_connection_is_closed() -> None:
    connection = AdminConnection(NOWHERE, request_timeout_seconds=60)
    pending = connection.broker_settings(1)
    assert not pending.done()
    connection.close()
    assert isinstance(pending.result(), KafkaFailure)
    assert isinstance(connection.describe_cluster().result(), KafkaFailure)
    connection.serve()


def test_a_client_that_another_thread_ends_meanwhile_is_a_failure_and_no_error() -> None:
    connection = AdminConnection(NOWHERE)
    client = connection._client.current()
    assert isinstance(client, AdminClient)
    end_admin_client(client)
    for pending in (
        connection.broker_settings(1),
        connection.describe_topic("t"),
        connection.describe_cluster(),
    ):
        failure = pending.result()
        assert isinstance(failure, KafkaFailure)
        assert failure.sentence == "The connection to the cluster is closed."
    connection.serve()
    connection.close()
