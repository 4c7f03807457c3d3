"""The loopback cluster: its nodes have the faults that tests give them."""

from __future__ import annotations

import pytest

from testbed.loopback.clients import (
    visible_brokers,
)
from testbed.loopback.cluster import ClusterSpec, NodeSpec
from testbed.loopback.node import NodeFailed
from tests.integration.conftest import StartCluster


@pytest.mark.long
def test_nodes_of_separate_roles_are_killed_hung_stopped_and_started_again(
    start_cluster: StartCluster,
) -> None:
    spec = ClusterSpec(
        nodes=(
            NodeSpec(node_id=100, roles=("controller",)),
            NodeSpec(node_id=1, roles=("broker",), log_dir_count=2),
        ),
    )
    cluster = start_cluster(spec)
    broker = cluster.nodes[1]
    assert [node.node_id for node in cluster.brokers] == [1]

    broker.kill()
    with pytest.raises(NodeFailed, match="node 1 ended with -9"):
        broker.accepts_connections()
    cluster.restart(1)
    broker.suspend()
    assert visible_brokers(broker.clients_address, timeout_seconds=1) == set()
    broker.resume()
    cluster.wait_until_serving([1])
    broker.stop()
    assert not broker.running()
    cluster.restart(1)
    assert visible_brokers(broker.clients_address) == {1}
