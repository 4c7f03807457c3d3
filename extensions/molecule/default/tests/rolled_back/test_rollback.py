"""After the rollback of broker 3, it has its former authorizer, and the others keep the fence."""

from __future__ import annotations

from typing import Any

import pytest
from host_state import AUTHORIZER, applied, kafka, produce, run, run_producer

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZERS = {
    "broker-1": AUTHORIZER,
    "broker-2": AUTHORIZER,
    "broker-3": STANDARD,
}


@pytest.fixture
def name(host: Any) -> str:
    return str(host.check_output("hostname"))


@pytest.mark.accepts("C1")
def test_only_the_broker_that_was_rolled_back_has_its_former_authorizer(host: Any, name: str):
    number = name.removeprefix("broker-")
    settings = kafka(host, "kafka-configs", f"--describe --all --entity-type brokers --entity-name {number}")
    (line,) = (line for line in settings.splitlines() if line.strip().startswith("authorizer.class.name="))
    assert line.split()[0] == f"authorizer.class.name={AUTHORIZERS[name]}"
    properties = run(host, "cat /etc/kafka/server.properties").splitlines()
    assert f"authorizer.class.name={STANDARD}" in properties
    assert any("kquota" in line for line in properties) == (name != "broker-3")
    if name != "broker-3":
        assert applied(host)["fence"]["installed"]


def test_acls_are_in_force_with_the_former_authorizer_and_with_the_fence(name: str, host: Any):
    if name != "broker-3":
        return
    assert "300 records sent" in produce(host, "orders", 300)
    assert "Not authorized to access topics: [ledger]" in run_producer(host, "ledger", 3).stdout
