"""A cluster with quotas in its brokers' properties, shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.loopback.runtime import KafkaRuntime
from tests.integration.fence.fenced_cluster import FencedCluster

QUOTAS = {
    "quota.window.num": "3",
    "kquota.quota.produce.default": "400K",
    "kquota.quota.produce.overrides": "free:50M",
    "kquota.quota.groups": "team,orders",
    "kquota.quota.group.team.client.ids": "shared-*",
    "kquota.quota.group.team.produce": "400K",
    "kquota.quota.group.orders.client.ids": "orders-app",
    "kquota.quota.group.orders.produce.total": "800K",
    "kquota.quota.group.orders.topics": "orders-.*",
}


@pytest.fixture(scope="module")
def quoted(kafka_runtime: KafkaRuntime, callback_jar: Path) -> Iterator[FencedCluster]:
    """Brokers 1 and 2, and controller 3; OPEN is decided and enforced."""
    quoted = FencedCluster(kafka_runtime, callback_jar, QUOTAS)
    with quoted.cluster:
        quoted.decide("OPEN")
        yield quoted
