"""Records with headers whose names are any bytes, by librdkafka: confluent-kafka takes texts alone."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from pathlib import Path

import confluent_kafka

_PRODUCER = 0
_TOPIC, _VALUE, _KEY, _FLAGS, _HEADER, _END = 1, 4, 5, 7, 9, 0
_COPY = 2
_LONGEST_PROBLEM = 512


def append(
    configuration: Mapping[str, str],
    topic: str,
    records: Iterable[tuple[bytes, bytes, tuple[tuple[bytes, bytes], ...]]],
    *,
    timeout_ms: int = 60_000,
) -> None:
    """Write records of key, value and headers in their order, and wait until a broker has them."""
    library = _library()
    problem = ctypes.create_string_buffer(_LONGEST_PROBLEM)
    settings = library.rd_kafka_conf_new()
    for name, value in configuration.items():
        pair = name.encode(), str(value).encode()
        refused = library.rd_kafka_conf_set(settings, *pair, problem, _LONGEST_PROBLEM)
        assert refused == 0, problem.value
    client = library.rd_kafka_new(_PRODUCER, settings, problem, _LONGEST_PROBLEM)
    assert client, problem.value
    try:
        for key, value, headers in records:
            arguments = [
                *(_TOPIC, ctypes.c_char_p(topic.encode()), _FLAGS, _COPY),
                *(_KEY, ctypes.c_char_p(key), ctypes.c_size_t(len(key))),
                *(_VALUE, ctypes.c_char_p(value), ctypes.c_size_t(len(value))),
            ]
            for name, content in headers:
                arguments += [_HEADER, ctypes.c_char_p(name), ctypes.c_char_p(content)]
                arguments.append(ctypes.c_ssize_t(len(content)))
            assert library.rd_kafka_producev(ctypes.c_void_p(client), *arguments, _END) == 0
        assert library.rd_kafka_flush(ctypes.c_void_p(client), timeout_ms) == 0
    finally:
        library.rd_kafka_destroy(ctypes.c_void_p(client))


def _library() -> ctypes.CDLL:
    """Return the librdkafka that confluent-kafka's wheel brings."""
    packages = Path(confluent_kafka.__file__).parent.parent
    (found,) = packages.glob("confluent_kafka.libs/librdkafka-*.so*")
    library = ctypes.CDLL(str(found))
    library.rd_kafka_conf_new.restype = ctypes.c_void_p
    library.rd_kafka_conf_set.argtypes = [
        *(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    ]
    library.rd_kafka_new.restype = ctypes.c_void_p
    library.rd_kafka_new.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    return library
