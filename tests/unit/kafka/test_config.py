"""The operator's properties, and what kquota makes of them."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from kquota.kafka.admin import AdminConnection
from kquota.kafka.config import ClientProperties, ConfigurationError, Role
from kquota.settings.kafka_options import OWNED_NAMES

SERVERS = {"bootstrap.servers": "127.0.0.1:1"}


def test_the_operators_properties_pass_untouched_and_win_over_the_defaults() -> None:
    given = {**SERVERS, "ssl.cipher.suites": "A:B", "reconnect.backoff.ms": 700, "socket.nagle.disable": True}
    made = ClientProperties(given, node=7).for_role(Role.READER)
    assert made["ssl.cipher.suites"] == "A:B"
    assert made["reconnect.backoff.ms"] == "700"
    assert made["socket.nagle.disable"] == "true"
    assert made["client.id"] == "kquota-7-reader"
    assert made["allow.auto.create.topics"] == "false"


@pytest.mark.parametrize("role", list(Role))
def test_reconnecting_is_never_more_than_a_second_away(role: Role) -> None:
    made = ClientProperties(SERVERS, node=1).for_role(role)
    assert int(made["reconnect.backoff.ms"]) <= int(made["reconnect.backoff.max.ms"]) <= 1000


@pytest.mark.parametrize("name", sorted(OWNED_NAMES))
def test_a_property_that_kquota_owns_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"kafka\.{name}: kquota sets this property itself"):
        ClientProperties({**SERVERS, name: "1"}, node=1)


@pytest.mark.parametrize("value", [None, [], {"a": 1}])
def test_a_value_that_is_no_scalar_is_refused_by_name(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"kafka\.ssl\.ca\.location: .*allowed are"):
        ClientProperties({**SERVERS, "ssl.ca.location": value}, node=1)


def test_bootstrap_servers_are_needed() -> None:
    with pytest.raises(ConfigurationError, match=r"kafka\.bootstrap\.servers: missing"):
        ClientProperties({}, node=1)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"ssl.ca.locations": "x"}, "ssl.ca.locations"),
        ({"security.protocol": "tls"}, "security.protocol"),
        ({"socket.timeout.ms": "soon"}, "socket.timeout.ms"),
        ({"security.protocol": "ssl", "ssl.keystore.location": "x.p12"}, "ssl.keystore.password"),
    ],
)
def test_what_librdkafka_refuses_is_a_configuration_error_that_names_it(
    more: dict[str, str], told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        AdminConnection(ClientProperties({**SERVERS, **more}, node=1))


def test_secrets_are_shown_nowhere() -> None:
    secrets = ("sasl.password", "ssl.key.password", "ssl.keystore.password", "ssl.key.pem")
    secrets += ("sasl.oauthbearer.client.secret", "sasl.oauthbearer.config")
    properties = ClientProperties({**SERVERS, **dict.fromkeys(secrets, "hunter2")}, node=1)
    assert "hunter2" not in repr(properties) + str(properties) + str(properties.redacted())
    assert set(properties.redacted()) == {*secrets, *SERVERS}
    assert properties.redacted()["bootstrap.servers"] == "127.0.0.1:1"
    assert properties.for_role(Role.USAGE)["sasl.password"] == "hunter2"


def test_every_default_and_owned_name_that_is_set_is_known_to_librdkafka() -> None:
    made = ClientProperties(SERVERS, node=1).for_role(Role.ADMIN)
    AdminClient({**made, "log_level": 0})
