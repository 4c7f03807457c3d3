"""After the uninstallation, nothing of kquota is left, and the brokers serve as before."""

from __future__ import annotations

from typing import Any

import pytest
from host_state import kafka, leftovers, produce, run


def test_nothing_is_left_on_the_host(host: Any):
    assert run(host, "dpkg-query --show --showformat '${Package} ${Status}\\n'").count("kquota") == 0
    assert leftovers(host) == ""
    assert "not-found" in run(host, "systemctl show --property=LoadState kquota-agent")


@pytest.mark.accepts("C1")
def test_the_broker_is_as_it_was_before(host: Any):
    assert host.service("kafka").is_running
    run(host, "cmp /etc/kafka/server.properties /root/server.properties.before")
    assert run(host, "stat --format '%U:%G %a' /etc/kafka/server.properties").strip() == "root:kafka 640"


@pytest.mark.accepts("C1")
def test_the_cluster_serves_and_knows_nothing_of_it(host: Any):
    assert "kquota" not in kafka(host, "kafka-topics", "--list")
    assert "kquota" not in kafka(host, "kafka-acls", "--list")
    settings = kafka(host, "kafka-configs", "--describe --entity-type brokers --entity-default")
    assert "kquota" not in settings
    kafka(host, "kafka-topics", "--create --if-not-exists --topic orders --partitions 3")
    kafka(host, "kafka-acls", "--add --allow-principal User:CN=application --producer --topic orders")
    assert "20000 records sent" in produce(host, "orders", 20000)
