"""The memory of the last good configuration keeps no secret of the environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kquota.settings.last_good import FILE_NAME, ConfigurationFile

SECRET = "hunter2-very-secret"


def remembered(tmp_path: Path, environ: dict[str, str]) -> dict[str, str]:
    """The variables that are remembered of a good start in this environment."""
    state = tmp_path / "state"
    state.mkdir()
    file = tmp_path / "agent.yml"
    file.write_text(
        "broker: {server_properties: /etc/kafka/server.properties}\n"
        f"kafka: {{bootstrap.servers: 'localhost:9093'}}\nstate_dir: {state}\n"
    )
    configuration = ConfigurationFile(file, environ)
    configuration.load()
    configuration.remember()
    text = (state / FILE_NAME).read_text()
    assert SECRET not in text
    variables = json.loads(text)["environment"]
    assert isinstance(variables, dict)
    return variables


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KQUOTA_KAFKA", json.dumps({"bootstrap.servers": "h:1", "ssl.key.password": SECRET})),
        ("KQUOTA_KAFKA__SSL_KEY_PASSWORD", SECRET),
        ("KQUOTA_KAFKA__SASL_PASSWORD", SECRET),
    ],
)
def test_a_secret_is_not_remembered(tmp_path: Path, name: str, value: str) -> None:
    assert remembered(tmp_path, {name: value}) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KQUOTA_KAFKA", json.dumps({"bootstrap.servers": "h:1"})),
        ("KQUOTA_KAFKA__CLIENT_RACK", "a"),
        ("KQUOTA_INTERVAL_SECONDS", "7"),
    ],
)
def test_what_is_no_secret_is_remembered(tmp_path: Path, name: str, value: str) -> None:
    assert remembered(tmp_path, {name: value, "PATH": "/bin"}) == {name: value}
