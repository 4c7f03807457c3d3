"""Produce requests without a client id, as no producer of today lets one send them.

Java's producer makes an id up, and librdkafka calls itself rdkafka; so these are written out by hand.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import Self

from testbed.loopback.cluster import KafkaCluster
from tests.integration.quotas.producers import RECORD_BYTES

_PRODUCE, _VERSION = 0, 3
_ALL_REPLICAS, _TIMEOUT_MS = -1, 30_000
_CASTAGNOLI = 0x82F63B78


class Nameless:
    """Sends one record at a time to a partition that broker 1 leads, at a steady rate; a Paced producer."""

    def __init__(
        self, cluster: KafkaCluster, client_id: str | None, topic: str, bytes_per_second: float
    ) -> None:
        self.client_id = client_id or ""
        self.delivered_bytes = self.failed = 0
        self.throttle_max_ms = self.throttle_average_ms = 0.0
        self._request = _produce_request(client_id, topic, _record_batch(bytes(RECORD_BYTES)))
        self._topic = topic
        self._gap_seconds = RECORD_BYTES / bytes_per_second
        host, port = cluster.nodes[1].clients_address.rsplit(":", 1)
        self._address = (host, int(port))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nameless")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        with socket.create_connection(self._address, timeout=60) as connection:
            due = time.monotonic()
            while not self._ended.wait(max(0.0, due - time.monotonic())):
                due = max(due + self._gap_seconds, time.monotonic() - 0.5)
                connection.sendall(struct.pack(">i", len(self._request)) + self._request)
                (size,) = struct.unpack(">i", _exactly(connection, 4))
                error, throttle_ms = _answer(_exactly(connection, size), self._topic)
                self.delivered_bytes += 0 if error else RECORD_BYTES
                self.failed += 1 if error else 0
                self.throttle_max_ms = max(self.throttle_max_ms, throttle_ms)
                self.throttle_average_ms = self.throttle_average_ms * 0.9 + throttle_ms * 0.1


def _text(text: str | None) -> bytes:
    return struct.pack(">h", -1) if text is None else struct.pack(">h", len(text)) + text.encode("ascii")


def _produce_request(client_id: str | None, topic: str, batch: bytes) -> bytes:
    """Return version 3 of the request, to partition 0, with its header."""
    header = struct.pack(">hhi", _PRODUCE, _VERSION, 1) + _text(client_id)
    body = _text(None) + struct.pack(">hii", _ALL_REPLICAS, _TIMEOUT_MS, 1) + _text(topic)
    return header + body + struct.pack(">iii", 1, 0, len(batch)) + batch


def _answer(response: bytes, topic: str) -> tuple[int, int]:
    """Return the error code and the throttle time, in milliseconds."""
    after_topic = 4 + 4 + 2 + len(topic) + 4
    _partition, error, _offset, _time, throttle_ms = struct.unpack_from(">ihqqi", response, after_topic)
    return error, throttle_ms


def _record_batch(value: bytes) -> bytes:
    """Return one record without a key as a batch of magic 2."""
    record = b"\x00" + _varint(0) + _varint(0) + _varint(-1) + _varint(len(value)) + value + _varint(0)
    record = _varint(len(record)) + record
    now_ms = int(time.time() * 1000)
    checked = struct.pack(">hiqqqhii", 0, 0, now_ms, now_ms, -1, -1, -1, 1) + record
    return struct.pack(">qiibI", 0, 9 + len(checked), -1, 2, _crc32c(checked)) + checked


def _varint(number: int) -> bytes:
    """Return a signed number, zigzag, seven bits a byte."""
    zigzag = (number << 1) ^ (number >> 63)
    found = bytearray()
    while zigzag > 0x7F:
        found.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    found.append(zigzag)
    return bytes(found)


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (_CASTAGNOLI if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        chunk = connection.recv(size - len(found))
        if not chunk:
            raise ConnectionError("the broker hung up")
        found += chunk
    return bytes(found)
