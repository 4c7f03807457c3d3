"""The cluster that the tests of the fence share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.loopback.runtime import KafkaRuntime
from tests.integration.fence.fenced_cluster import FencedCluster


@pytest.fixture(scope="module")
def fenced(kafka_runtime: KafkaRuntime, callback_jar: Path) -> Iterator[FencedCluster]:
    """A cluster behind the fence, shared by a module's tests; each begins by deciding OPEN."""
    fenced = FencedCluster(kafka_runtime, callback_jar)
    with fenced.cluster:
        yield fenced
