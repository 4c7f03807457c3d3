"""An operator's librdkafka properties in the form that Kafka's own tools read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from kquota.kafka.config import ConfigurationError

BOOTSTRAP = ("bootstrap.servers", "metadata.broker.list")
_ABOUT_SECURITY = ("security.", "ssl.", "sasl.", "enable.ssl.", "enable.sasl.", "oauthbearer", "https.")
_SAME = (
    "ssl.cipher.suites",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "sasl.kerberos.service.name",
)
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_PEM_KEYS = ("-----BEGIN PRIVATE KEY-----", "-----BEGIN ENCRYPTED PRIVATE KEY-----")
_HINT = "name client properties in Kafka's own form by --tool-config"


def tool_properties(
    options: Mapping[str, str], read: Callable[[Path], str] = lambda path: path.read_text("utf-8")
) -> dict[str, str]:
    """Return a Java client's properties for the same connection; `read` reads the files of PEM.

    Properties that are about librdkafka itself, as its time-outs, are left out.

    Raises:
        ConfigurationError: one has no such form; the text names it, and what to do.
    """
    left = {name: value for name, value in options.items() if name.startswith(_ABOUT_SECURITY)}
    protocol = left.pop("security.protocol", "plaintext").upper()
    found = {"security.protocol": protocol}
    if "SSL" in protocol:
        found |= _identity(left, read) | _authorities(left)
        identification = left.pop("ssl.endpoint.identification.algorithm", None)
        if identification is not None:
            found["ssl.endpoint.identification.algorithm"] = identification.replace("none", "")
    if protocol.startswith("SASL"):
        found |= _login(left)
    if left.get("enable.ssl.certificate.verification", "").lower() == "true":
        del left["enable.ssl.certificate.verification"]
    found |= {name: left.pop(name) for name in _SAME if name in left}
    if "ssl.keystore.location" in found:
        found["ssl.keystore.type"] = "PKCS12"
    if left:
        raise ConfigurationError(f"{min(left)} can't be given to Kafka's tool: {_HINT}")
    return found


def _authorities(left: dict[str, str]) -> dict[str, str]:
    pem, path = left.pop("ssl.ca.pem", None), left.pop("ssl.ca.location", None)
    if pem is not None:
        return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem}
    if path is None:
        return {}
    if Path(path).is_dir():
        raise ConfigurationError(
            f"ssl.ca.location: {path} is a directory, which Kafka's tool can't use: {_HINT}"
        )
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": path}


def _identity(left: dict[str, str], read: Callable[[Path], str]) -> dict[str, str]:
    certificate, key = (_pem(left, f"ssl.{part}", read) for part in ("certificate", "key"))
    password = left.pop("ssl.key.password", None)
    if certificate is None or key is None:
        return {}
    key = key[max(key.find("-----BEGIN"), 0) :].strip()
    if not key.startswith(_PEM_KEYS):
        raise ConfigurationError(
            "ssl.key.location: Kafka's tool reads keys in PKCS#8 alone: convert it (openssl pkcs8 -topk8), or"
            f" {_HINT}"
        )
    found = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": certificate,
        "ssl.keystore.key": key,
    }
    # A password for a key that has none is an error there.
    return (
        found
        if password is None or not key.startswith(_PEM_KEYS[1])
        else found | {"ssl.key.password": password}
    )


def _pem(left: dict[str, str], name: str, read: Callable[[Path], str]) -> str | None:
    text, path = left.pop(f"{name}.pem", None), left.pop(f"{name}.location", None)
    if text is not None or path is None:
        return text
    try:
        return read(Path(path))
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"{name}.location: {path} can't be read: {error}") from None


def _login(left: dict[str, str]) -> dict[str, str]:
    mechanism = left.pop("sasl.mechanisms", None) or left.pop("sasl.mechanism", "GSSAPI")
    left.pop("sasl.mechanism", None)
    module = _LOGIN_MODULES.get(mechanism)
    if module is None:
        raise ConfigurationError(f"sasl.mechanism: {mechanism} can't be given to Kafka's tool: {_HINT}")
    user, password = (_quoted(left.pop(f"sasl.{part}", "")) for part in ("username", "password"))
    jaas = f"{module} required username={user} password={password};"
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
