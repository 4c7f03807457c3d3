"""A client that is built anew when its credential files change, with a fake in place of librdkafka's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kquota.kafka.client import RotatingClient
from kquota.kafka.config import ClientProperties, ConfigurationError, Role

NO_THREAD = KafkaException(
    KafkaError(KafkaError._CRIT_SYS_RESOURCE, "Failed to create producer: Failed to create thread")
)


class Bench:
    """A RotatingClient on a clock of ours, whose builds end as they are told."""

    def __init__(self, directory: Path) -> None:
        self.key = directory / "agent.key"
        self.key.write_text("a key", "utf-8")
        self.refusal: KafkaException | None = None
        self.builds = 0
        self.now_seconds = 100.0

    def rotating(self) -> RotatingClient[int]:
        properties = ClientProperties(
            {"bootstrap.servers": "127.0.0.1:1", "ssl.key.location": str(self.key)}, node=1
        )
        return RotatingClient(self._build, properties, Role.USAGE, clock=lambda: self.now_seconds)

    def _build(self, _configuration: dict[str, Any]) -> int:
        self.builds += 1
        if self.refusal is not None:
            raise self.refusal
        return self.builds


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_that_a_client_can_not_get_a_thread_says_nothing_about_the_configuration(bench: Bench) -> None:
    bench.refusal = NO_THREAD
    with pytest.raises(OSError, match="Failed to create thread"):
        bench.rotating()
    bench.refusal = KafkaException(KafkaError(KafkaError._INVALID_ARG, "No such property"))
    with pytest.raises(ConfigurationError, match="No such property"):
        bench.rotating()
