"""Which brokers are active."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kquota.kafka.admin import AdminConnection
from kquota.kafka.brokers import BrokerList, BrokerListFailed, BrokerWatch, OwnBroker, OwnBrokerFailed
from testbed.loopback.cluster import KafkaCluster
from tests.integration.kafka.conftest import Seen
from tests.integration.waiting import eventually

Close = Callable[[Any], Any]


@pytest.mark.accepts("A15")
def test_the_list_follows_a_broker_that_goes_and_comes(
    secured: KafkaCluster, admin: AdminConnection, closing: Close
) -> None:
    seen = Seen()
    watch = BrokerWatch(
        admin, seen, own_broker_id=2, brokers_interval_seconds=0.1, own_broker_interval_seconds=0.3
    )
    closing(watch).start()

    def ids() -> frozenset[int]:
        return seen.of(BrokerList)[-1].ids

    eventually(lambda: seen.of(BrokerList) and seen.of(OwnBroker), "the brokers and the own one")
    assert ids() == {1, 2}
    assert seen.of(BrokerList)[-1].cluster_id == secured.cluster_id
    own = seen.of(OwnBroker)[-1]
    assert own.broker_id == 2
    assert own.settings["node.id"] == "2"
    assert own.settings["log.dirs"] == ",".join(map(str, secured.nodes[2].layout.log_dirs))
    assert int(own.settings["broker.session.timeout.ms"]) > 0

    secured.nodes[2].stop()
    try:
        eventually(lambda: ids() == {1}, "the stopped broker is gone from the list")
        # A question that was with the broker when it stopped fails; no later one waits for it.
        answers, failures = len(seen.of(BrokerList)), len(seen.of(BrokerListFailed))
        assert failures <= 1
        eventually(lambda: seen.of(OwnBrokerFailed), "the own broker does not answer")
        eventually(lambda: len(seen.of(BrokerList)) >= answers + 10, "the list goes on")
        assert len(seen.of(BrokerListFailed)) == failures
    finally:
        secured.restart(2)
    eventually(lambda: ids() == {1, 2}, "the broker is back in the list")
    heard = len(seen.of(OwnBroker))
    eventually(lambda: len(seen.of(OwnBroker)) > heard, "the own broker answers again")
