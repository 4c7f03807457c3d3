"""Producers of librdkafka, one connection and one topic each, until SIGTERM; then prints one JSON object.

    python -m bench.librdkafka_load BOOTSTRAP TOPIC_PREFIX CONNECTIONS RECORD_BYTES RATE [name=value]...

RATE is in bytes per second of each connection; 0: flat out. The counterpart of JavaLoad.java, also=PREFIX
included.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from statistics import quantiles

from confluent_kafka import KafkaError, Message, Producer

_OWED_SECONDS = 0.1
_IDLE_SECONDS = 0.004
_POLL_SECONDS = 0.02
_RECORDS_A_TURN = 50
_WARM_SECONDS = 1.0


class Tally:
    """The producers' results, until they are stopped."""

    def __init__(self) -> None:
        self.acknowledged_records = 0
        self.failed_records = 0
        self.errors: set[str] = set()
        self.stopped = False
        self._latencies: list[float] = []
        self._warm_until = time.monotonic() + _WARM_SECONDS

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        """Count one record."""
        if error is None:
            self.acknowledged_records += 1
            if (latency := message.latency()) is not None and time.monotonic() > self._warm_until:
                self._latencies.append(latency)
        else:
            self.failed_records += 1
            self.errors.add(error.name())

    def stop(self, _number: int, _frame: object) -> None:
        """Remember that it is over."""
        self.stopped = True

    def latency_milliseconds(self, percent: int) -> float | None:
        """From send to acknowledgement: that share of the records was as quick; None without two."""
        found = self._latencies
        return 1000 * quantiles(found, n=100)[percent - 1] if len(found) > 1 else None


def produce(
    producers: Sequence[Producer], topics: Sequence[str], value: bytes, rate: float, tally: Tally
) -> None:
    """Produce until stopped. Records that could not be sent in time are not owed."""
    gap_seconds = len(value) / rate if rate else 0.0
    now = next_poll = time.monotonic()
    due = [now] * len(producers)
    while not tally.stopped:
        now = time.monotonic()
        idle = True
        for number, producer in enumerate(producers):
            due[number] = max(due[number], now - _OWED_SECONDS)
            for _ in range(_RECORDS_A_TURN):
                if due[number] > now:
                    break
                try:
                    producer.produce(topics[number], value)
                except BufferError:  # its queue is full: it is held
                    break
                due[number] += gap_seconds
                idle = False
        if now >= next_poll:
            next_poll = now + _POLL_SECONDS
            for producer in producers:
                producer.poll(0)
        if idle:
            time.sleep(_IDLE_SECONDS)


def main(arguments: Sequence[str]) -> int:
    """Run until SIGTERM."""
    bootstrap, prefix, connections, record_bytes, rate = arguments[:5]
    settings = dict(argument.split("=", 1) for argument in arguments[5:])
    also = settings.pop("also", None)
    tally = Tally()
    signal.signal(signal.SIGTERM, tally.stop)
    topics = [f"{prefix}{number}" for number in range(1, int(connections) + 1)]
    common = {"bootstrap.servers": bootstrap, "log_level": "0", "on_delivery": tally.delivered, **settings}
    producers = [Producer({**common, "client.id": topic}) for topic in topics]
    if also is not None:
        topics += [f"{also}{number}" for number in range(1, len(producers) + 1)]
        producers += producers
    produce(producers, topics, os.urandom(int(record_bytes)), float(rate), tally)
    results = {
        "acknowledged_records": tally.acknowledged_records,
        "failed_records": tally.failed_records,
        "errors": sorted(tally.errors),
        "median_milliseconds": tally.latency_milliseconds(50),
        "p99_milliseconds": tally.latency_milliseconds(99),
    }
    print(json.dumps(results), flush=True)
    os._exit(0)  # the content of the queues is of no interest, and flushing it would take as long as a mute


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
