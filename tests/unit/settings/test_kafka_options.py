"""librdkafka's names pass untouched; kquota's own are refused; secrets are never shown."""

import importlib
from pathlib import Path

import confluent_kafka
import pytest

from kquota.settings import SettingsError, load_text
from kquota.settings.kafka_options import OWNED_NAMES, KafkaOptions, is_secret
from tests.unit.settings.configuration import MINIMAL, loaded, problems, problems_of

SECRET = "hunter2-very-secret"


def test_names_and_values_pass_untouched() -> None:
    text = """\
  security.protocol: ssl
  enable.ssl.certificate.verification: true
  socket.timeout.ms: 60000
  sasl.password: 0010
  sasl.username: 1e5
  client.rack: no
  sasl.kerberos.principal: Yes
  ssl.key.password: True
  ssl.ca.location: /etc/ca.pem
"""
    options = loaded(text).librdkafka()
    assert dict(options) == {
        "bootstrap.servers": "localhost:9093",
        "security.protocol": "ssl",
        "enable.ssl.certificate.verification": "true",
        "socket.timeout.ms": "60000",
        "sasl.password": "0010",
        "sasl.username": "1e5",
        "client.rack": "no",
        "sasl.kerberos.principal": "Yes",
        "ssl.key.password": "True",
        "ssl.ca.location": "/etc/ca.pem",
    }


def test_librdkafka_takes_what_is_passed() -> None:
    options = loaded("  security.protocol: plaintext\n  socket.keepalive.enable: true\n").librdkafka()
    confluent_kafka.Consumer({**options, "group.id": "unused", "bootstrap.servers": ""}).close()


def test_underscores_of_a_variable_are_dots_and_its_value_is_text() -> None:
    environ = {"KQUOTA_KAFKA__SSL_KEY_PASSWORD": "1e5", "KQUOTA_KAFKA__BOOTSTRAP_SERVERS": "a:1,b:2"}
    assert dict(loaded("", environ).kafka) == {"bootstrap.servers": "a:1,b:2", "ssl.key.password": "1e5"}


@pytest.mark.parametrize("name", sorted(OWNED_NAMES))
def test_a_name_kquota_owns_is_refused_with_the_reason(name: str) -> None:
    problem = problems_of(f"  {name}: x\n")[f"kafka.{name}"]
    assert OWNED_NAMES[name] in str(problem)
    problem = problems_of(f"kafka_secrets: {{{name}: /file}}\n")[f"kafka_secrets.{name}"]
    assert OWNED_NAMES[name] in str(problem)


@pytest.mark.parametrize("value", ["[a, b]", "{a: b}", "null"])
def test_only_scalars(value: str) -> None:
    assert (
        "a text, a number, true or false"
        in problems_of(f"  client.rack: {value}\n")["kafka.client.rack"].allowed
    )


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("sasl.password", True),
        ("ssl.key.password", True),
        ("ssl.keystore.password", True),
        ("ssl.key.pem", True),
        ("sasl.oauthbearer.client.secret", True),
        ("sasl.oauthbearer.assertion.private.key.pem", True),
        ("sasl.oauthbearer.assertion.private.key.passphrase", True),
        ("sasl.oauthbearer.config", True),
        ("SASL.PASSWORD", True),
        ("sasl.oauthbearer.assertion.private.key.file", False),
        ("ssl.key.location", False),
        ("ssl.certificate.pem", False),
        ("sasl.username", False),
        ("bootstrap.servers", False),
    ],
)
def test_what_is_secret(name: str, secret: bool) -> None:
    assert is_secret(name) is secret


def test_secrets_are_in_no_text_form() -> None:
    settings = loaded(f"  sasl.password: {SECRET}\n")
    assert SECRET not in f"{settings!r} {settings} {settings.redacted()} {settings.model_dump()}"
    assert SECRET not in f"{settings.kafka} {settings.model_dump_json()} {settings.librdkafka()!r}"
    assert settings.redacted()["kafka"]["sasl.password"] == "[redacted]"
    assert settings.secret_values() == {SECRET}
    assert settings.librdkafka()["sasl.password"] == SECRET


def test_a_refused_secret_is_not_shown() -> None:
    found = problems_of(f"  sasl.password: [{SECRET}]\n")
    assert SECRET not in str(found["kafka.sasl.password"])
    assert "[redacted]" in str(found["kafka.sasl.password"])


@pytest.mark.parametrize("text", [f"{SECRET}", f"'{SECRET}/x'", f"[{SECRET}]"])
@pytest.mark.parametrize("environ", [{}, {"CREDENTIALS_DIRECTORY": "/nowhere"}])
def test_a_secret_in_the_wrong_place_is_not_shown(text: str, environ: dict[str, str]) -> None:
    (problem,) = problems_of(f"kafka_secrets: {{sasl.password: {text}}}\n", environ).values()
    assert SECRET not in f"{problem!r} {problem}"


def test_a_whole_section_in_the_wrong_shape_is_not_shown() -> None:
    for more in (f"kafka_secrets: sasl.password={SECRET}\n", f"kafka_secrets: [{SECRET}]\n"):
        assert SECRET not in repr(problems_of(more))
    for value in (f'"sasl.password={SECRET}"', f"[{SECRET}]"):
        text = f"broker: {{server_properties: /x}}\nkafka: {value}\n"
        assert SECRET not in repr(problems(text))


def test_a_secret_from_a_file_or_a_credential(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"{name}-{SECRET}\n")
        (tmp_path / name).chmod(0o600)
    more = f"kafka_secrets:\n  ssl.key.password: {tmp_path}/one\n  sasl.password: two\n"
    settings = loaded(more, {"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert settings.librdkafka()["ssl.key.password"] == f"one-{SECRET}"
    assert settings.librdkafka()["sasl.password"] == f"two-{SECRET}"
    assert settings.secret_values() == {f"one-{SECRET}", f"two-{SECRET}"}
    assert SECRET not in f"{settings!r} {settings.redacted()} {settings.model_dump()}"
    assert settings.redacted()["kafka"]["ssl.key.password"] == "[redacted]"


def test_a_changed_secret_makes_other_settings(tmp_path: Path) -> None:
    file = tmp_path / "password"
    seen = []
    for secret in ("a", "b"):
        file.write_text(secret)
        file.chmod(0o640)
        seen.append(loaded(f"kafka_secrets: {{sasl.password: {file}}}\n"))
    assert seen[0] != seen[1]


@pytest.mark.parametrize(
    ("content", "mode", "word"),
    [
        ("secret", 0o644, "every user"),
        ("", 0o600, "empty"),
        ("\n", 0o600, "empty"),
        (None, 0, "can't be read"),
    ],
)
def test_a_secret_that_cannot_be_used(tmp_path: Path, content: str | None, mode: int, word: str) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_text(content)
        file.chmod(mode)
    problem = problems_of(f"kafka_secrets: {{sasl.password: {file}}}\n")["kafka_secrets.sasl.password"]
    assert word in str(problem)
    assert str(file) in str(problem)


@pytest.mark.parametrize(
    ("name", "unit"), [("agent", "kquota-agent.service"), ("east", "kquota-agent@east.service")]
)
def test_who_is_passed_no_credentials_finds_those_of_the_running_agent(
    name: str, unit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The package gives its function the module's name.
    monkeypatch.setattr(importlib.import_module("kquota.settings.load"), "_CREDENTIALS", tmp_path)
    text = MINIMAL + "kafka_secrets: {sasl.password: kafka-password}\n"
    configuration = Path(f"/etc/kquota/{name}.yml")
    with pytest.raises(SettingsError, match=f"a credential in {tmp_path}/{unit}, which can't be read"):
        load_text(text, configuration, {})
    (tmp_path / unit).mkdir()
    (tmp_path / unit / "kafka-password").write_text(SECRET)
    (tmp_path / unit / "kafka-password").chmod(0o400)
    assert load_text(text, configuration, {}).librdkafka()["sasl.password"] == SECRET


@pytest.mark.parametrize("reference", ["a/b", "''", "..", "7", "[x]"])
def test_what_refers_to_no_secret(reference: str) -> None:
    found = problems_of(
        f"kafka_secrets: {{sasl.password: {reference}}}\n", {"CREDENTIALS_DIRECTORY": "/none"}
    )
    assert "kafka_secrets.sasl.password" in found


def test_one_place_for_one_secret(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret")
    file.chmod(0o600)
    found = problems_of(f"  sasl.password: x\nkafka_secrets: {{sasl.password: {file}}}\n")
    assert list(found) == ["kafka_secrets.sasl.password"]


def test_options_are_a_mapping() -> None:
    options = KafkaOptions({"a": "1"})
    assert (len(options), list(options), options["a"]) == (1, ["a"], "1")
    assert options == {"a": "1"}
