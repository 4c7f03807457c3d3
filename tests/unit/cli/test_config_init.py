"""`kquota config init`: which listener of a broker the agent is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from kquota.cli.config_init import listener_of
from kquota.disks.server_properties import BrokerPropertiesError

FILE = Path("/etc/kafka/server.properties")
CONTROLLER = {"controller.listener.names": "CONTROLLER"}


@pytest.mark.parametrize(
    ("raw", "protocol", "address"),
    [
        ({}, "PLAINTEXT", "localhost:9092"),
        (
            {**CONTROLLER, "listeners": "CONTROLLER://:9093, PLAINTEXT://0.0.0.0:9095"},
            "PLAINTEXT",
            "localhost:9095",
        ),
        (
            {
                "listeners": "OUT://:9092,IN://:9094",
                "advertised.listeners": "OUT://kafka.example.org:9092,IN://[fd00::1]:9094",
                "listener.security.protocol.map": "OUT:PLAINTEXT,IN:SSL",
                "inter.broker.listener.name": "IN",
            },
            "SSL",
            "[fd00::1]:9094",
        ),
        (
            {
                "listeners": "SASL_SSL://b:9092,PLAINTEXT://b:9095",
                "security.inter.broker.protocol": "SASL_SSL",
            },
            "PLAINTEXT",
            "b:9095",
        ),
    ],
)
def test_the_listener_of_the_brokers_counts_where_it_needs_no_password(
    raw: dict[str, str], protocol: str, address: str
) -> None:
    found = listener_of(raw, FILE)
    assert (found.protocol, found.address) == (protocol, address)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (
            {"listeners": "SASL_SSL://b:9092"},
            "SASL_SSL (SASL_SSL), and no file of the broker names the agent's",
        ),
        ({**CONTROLLER, "listeners": "CONTROLLER://:9093"}, "listeners has none for clients"),
        ({"listeners": "${env:LISTENERS}"}, "allowed is NAME://host:port"),
    ],
)
def test_a_broker_without_a_listener_for_it_is_named(raw: dict[str, str], says: str) -> None:
    with pytest.raises(BrokerPropertiesError) as refused:
        listener_of(raw, FILE)
    assert str(refused.value).startswith(f"{FILE}: ")
    assert says in str(refused.value)
