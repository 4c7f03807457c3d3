"""The operator's properties, and what kquota makes of them."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from kquota.kafka.admin import AdminConnection
from kquota.kafka.config import ClientProperties, ConfigurationError, Role

SERVERS = {"bootstrap.servers": "127.0.0.1:1"}


def test_the_operators_properties_pass_untouched_and_win_over_the_defaults() -> None:
    given = {
        **SERVERS,
        "ssl.cipher.suites": "A:B",
        "reconnect.backoff.ms": "700",
        "socket.nagle.disable": "true",
    }
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
    assert "hunter2" not in repr(properties) + str(properties)
    assert properties.for_role(Role.PRODUCER)["sasl.password"] == "hunter2"


def test_every_default_and_owned_name_that_is_set_is_known_to_librdkafka() -> None:
    made = ClientProperties(SERVERS, node=1).for_role(Role.ADMIN)
    AdminClient({**made, "log_level": 0})
