"""The properties of a Kafka client: those that Spark's Kafka source refuses, and files that can't be read."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from kquota_pipeline.cli.main import COMMANDS


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b"key.deserializer=a.B\n", "key.deserializer: remove it: "),
        (b"security.protocol=SSL\nvalue.deserializer=a.B\n", "value.deserializer: remove it: "),
        (b"Interceptor.Classes=a.B\n", "Interceptor.Classes: remove it: "),
        (b"ssl.key.password=\xff\n", "can't decode byte 0xff"),
        (b"ssl.key.password=\\u12\n", "\\u12"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_key(tmp_path, written, said):
    path = tmp_path / "client.properties"
    path.write_bytes(written)
    places = (f"--{name}=file:{tmp_path}/{name}" for name in ("tables", "checkpoint"))
    arguments = ["ingest", *places, "--bootstrap-servers=localhost:1", f"--kafka-properties={path}"]
    done = CliRunner().invoke(COMMANDS.application("ingest"), arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"kquota-pipeline: {path}: ")
    assert said in done.stderr
    if "remove it" in said:
        assert "security.protocol, ssl.…, sasl.…" in done.stderr, "what is allowed"
