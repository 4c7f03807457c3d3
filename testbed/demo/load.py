"""A producer and a consumer as programs of their own, as applications are.

    python -m testbed.demo.load produce --bootstrap HOST:PORT --topic NAME [--record-bytes N] [-X name=value]…
    python -m testbed.demo.load consume --bootstrap HOST:PORT --topic NAME [-X name=value]…

Both print one JSON object a line, every 0.25 s and at the end (SIGTERM, SIGINT, or --seconds): see
`Progress`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.error import ConsumeError

_REPORT_SECONDS = 0.25
_FLUSH_SECONDS = 10.0


@dataclass
class Progress:
    """A client's work since it started."""

    at: float
    """CLOCK_MONOTONIC in seconds, which all processes of a machine share."""
    records: int = 0
    """Acknowledged to the producer, or received by the consumer."""
    bytes: int = 0
    """Of their values."""
    failed_records: int = 0
    """Given up by the producer."""
    last_error: str | None = None
    finished: bool = False


class _Reporter:
    """Prints the progress at intervals; knows when to stop."""

    def __init__(self, seconds: float | None) -> None:
        self.progress = Progress(at=time.monotonic())
        self._deadline = time.monotonic() + seconds if seconds is not None else float("inf")
        self._next_report = 0.0
        self._stopped = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def going_on(self) -> bool:
        """Report when it is time; False when the program is to end."""
        now = time.monotonic()
        if now >= self._next_report:
            self._next_report = now + _REPORT_SECONDS
            self.report()
        return not self._stopped and now < self._deadline

    def report(self) -> None:
        self.progress.at = time.monotonic()
        print(json.dumps(asdict(self.progress)), flush=True)

    def finish(self) -> int:
        self.progress.finished = True
        self.report()
        return 0

    def remember(self, error: KafkaError) -> None:
        self.progress.last_error = error.str()

    def _stop(self, _number: int, _frame: object) -> None:
        self._stopped = True


def produce(
    configuration: dict[str, str], topic: str, record_bytes: int, rate_bytes: float, seconds: float | None
) -> int:
    """Produce records of random bytes until stopped; flat out, or at `rate_bytes` a second."""
    reporter = _Reporter(seconds)
    progress = reporter.progress
    value = os.urandom(record_bytes)

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is None:
            progress.records += 1
            progress.bytes += record_bytes
        else:
            progress.failed_records += 1
            reporter.remember(error)

    producer = Producer({**configuration, "error_cb": reporter.remember, "on_delivery": delivered})
    started = time.monotonic()
    offered_bytes = 0
    while reporter.going_on():
        if rate_bytes and offered_bytes > (time.monotonic() - started) * rate_bytes:
            producer.poll(0.01)
            continue
        try:
            producer.produce(topic, value)
            offered_bytes += record_bytes
            producer.poll(0)
        except BufferError:  # librdkafka's queue is full: it is as fast as the brokers let it be
            producer.poll(0.05)
            if rate_bytes:  # what found no room is not made up for later, beyond the rate
                started = time.monotonic() - offered_bytes / rate_bytes
    producer.flush(_FLUSH_SECONDS)
    return reporter.finish()


def consume(configuration: dict[str, str], topic: str, rate_bytes: float, seconds: float | None) -> int:
    """Read the topic from its beginning and continue until stopped; flat out, or `rate_bytes` a second."""
    reporter = _Reporter(seconds)
    # Retention may overtake a reader: then go on with the oldest record there is.
    settings = {"group.id": "kquota-demo", "enable.auto.commit": "false", "auto.offset.reset": "earliest"}
    consumer = Consumer({**configuration, **settings, "error_cb": reporter.remember})
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    started = time.monotonic()
    while reporter.going_on():
        if rate_bytes and reporter.progress.bytes > (time.monotonic() - started) * rate_bytes:
            time.sleep(0.01)
            continue
        try:
            messages = consumer.consume(num_messages=100, timeout=0.1)
        except (ConsumeError, KafkaException) as error:
            reporter.remember(error.args[0])
            continue
        for message in messages:
            if (problem := message.error()) is not None:
                reporter.remember(problem)
            else:
                reporter.progress.records += 1
                reporter.progress.bytes += len(message.value() or b"")
    consumer.close()
    return reporter.finish()


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m testbed.demo.load", description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["produce", "consume"])
    parser.add_argument("--bootstrap", required=True, metavar="HOST:PORT")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--record-bytes", type=int, default=10_000)
    parser.add_argument("--rate-bytes", type=float, default=0.0, help="per second; 0: flat out")
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("-X", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args(arguments)
    settings = dict(setting.split("=", 1) for setting in options.settings)
    configuration = {"bootstrap.servers": options.bootstrap, "log_level": "0", **settings}
    if options.what == "produce":
        return produce(
            configuration, options.topic, options.record_bytes, options.rate_bytes, options.seconds
        )
    return consume(configuration, options.topic, options.rate_bytes, options.seconds)


if __name__ == "__main__":
    sys.exit(main())
