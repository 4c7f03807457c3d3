"""An operator's librdkafka properties, as Kafka's own tools read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kquota.kafka.config import ConfigurationError
from kquota.kafka.tool_properties import tool_properties

KEY = "-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----"
ENCRYPTED = KEY.replace("PRIVATE", "ENCRYPTED PRIVATE")
FILES = {
    "/c.pem": "chain",
    "/k.pem": "Bag Attributes\n" + KEY + "\n",
    "/e.pem": ENCRYPTED,
    "/old.pem": "-----BEGIN EC",
}
MUTUAL = {
    "bootstrap.servers": "a:9092",
    "security.protocol": "ssl",
    "ssl.ca.location": "/ca.pem",
    "ssl.certificate.location": "/c.pem",
    "ssl.key.location": "/k.pem",
    "ssl.key.password": "secret",
    "socket.timeout.ms": "1000",
}


def read(path: Path) -> str:
    return FILES[str(path)]


def test_mutual_tls_becomes_a_key_store_of_pem() -> None:
    assert tool_properties(MUTUAL, read) == {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "chain",
        "ssl.keystore.key": KEY,
    }, "a password for a key without one is an error there"
    encrypted = tool_properties(MUTUAL | {"ssl.key.location": "/e.pem"}, read)
    assert (encrypted["ssl.keystore.key"], encrypted["ssl.key.password"]) == (ENCRYPTED, "secret")


def test_a_login_by_password_becomes_one_of_jaas() -> None:
    found = tool_properties(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": "ops",
            "sasl.password": 'a"b\\c',
            "ssl.ca.pem": "authority",
            "ssl.endpoint.identification.algorithm": "none",
            "enable.ssl.certificate.verification": "true",
        }
    )
    assert found == {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "authority",
        "ssl.endpoint.identification.algorithm": "",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="ops" password="a\\"b\\\\c";',
    }


def test_a_key_store_stays_one() -> None:
    store = {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "secret"}
    found = tool_properties({"security.protocol": "SSL"} | store)
    assert found == {"security.protocol": "SSL", "ssl.keystore.type": "PKCS12"} | store


def test_without_security_nothing_is_left() -> None:
    assert tool_properties({"bootstrap.servers": "a:9092", "debug": "all"}) == {
        "security.protocol": "PLAINTEXT"
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            MUTUAL | {"ssl.key.location": "/old.pem"},
            "ssl.key.location: Kafka's tool reads keys in PKCS#8 alone",
        ),
        (MUTUAL | {"ssl.ca.location": "/etc"}, "ssl.ca.location: /etc is a directory"),
        (MUTUAL | {"ssl.curves.list": "P-521"}, "ssl.curves.list can't be given to Kafka's tool"),
        (
            MUTUAL | {"enable.ssl.certificate.verification": "false"},
            "enable.ssl.certificate.verification can't",
        ),
        ({"security.protocol": "sasl_plaintext"}, "sasl.mechanism: GSSAPI can't be given to Kafka's tool"),
    ],
)
def test_one_that_has_no_such_form_is_refused_with_a_way_out(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        tool_properties(options, read)
    assert str(refused.value).startswith(words)
    assert str(refused.value).endswith("name client properties in Kafka's own form by --tool-config")


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone.pem"
    with pytest.raises(ConfigurationError, match=f"ssl.certificate.location: {gone} can't be read"):
        tool_properties(MUTUAL | {"ssl.certificate.location": str(gone)})
