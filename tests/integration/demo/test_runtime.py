"""The cache of Kafka's jars: complete or absent, whatever happens to those who fill it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.loopback.runtime import (
    DEFAULT_KAFKA_VERSION,
    KafkaRuntime,
    RuntimeUnavailable,
    ensure_kafka_runtime,
)

FETCH = "from testbed.loopback.runtime import ensure_kafka_runtime as e; print(e(report=print).jars)"


def fetch(cache: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    return subprocess.Popen(
        [sys.executable, "-u", "-c", FETCH],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.mark.long
def test_an_interrupted_fetch_is_never_taken_for_complete(tmp_path: Path) -> None:
    family = tmp_path / "kquota" / f"kafka-{DEFAULT_KAFKA_VERSION}"
    with fetch(tmp_path) as victim:
        while not list(family.glob("fetching-*/*.jar")):
            assert victim.poll() is None, victim.communicate()[0]
            time.sleep(0.005)
        os.killpg(victim.pid, signal.SIGKILL)
    assert not list(family.glob("*/kafka_2.13-*.jar")) or list(family.glob("fetching-*"))

    with fetch(tmp_path) as one, fetch(tmp_path) as other:
        outputs = [process.communicate()[0] for process in (one, other)]

    assert [one.returncode, other.returncode] == [0, 0], outputs
    assert sum("fetching Apache Kafka" in output for output in outputs) == 1  # the other one waited
    assert not list(family.glob("fetching-*"))
    jars = Path(outputs[0].splitlines()[-1])
    assert (jars / f"kafka_2.13-{DEFAULT_KAFKA_VERSION}.jar").stat().st_size > 1_000_000


def test_a_filled_cache_needs_no_maven(kafka_runtime: KafkaRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(Path(kafka_runtime.java).resolve().parents[1]))
    monkeypatch.setenv("PATH", "/nonexistent")

    assert ensure_kafka_runtime(kafka_runtime.version).jars == kafka_runtime.jars


def test_missing_tools_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kafka_runtime: KafkaRuntime
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(RuntimeUnavailable, match="no java on PATH"):
        ensure_kafka_runtime()

    monkeypatch.setenv("JAVA_HOME", str(Path(kafka_runtime.java).resolve().parents[1]))
    with pytest.raises(RuntimeUnavailable, match="Maven"):
        ensure_kafka_runtime()
    assert not list(tmp_path.rglob("*.jar"))


def test_a_version_that_does_not_exist_is_maven_s_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    with pytest.raises(RuntimeUnavailable, match=r"could not fetch Kafka 0\.0\.7"):
        ensure_kafka_runtime("0.0.7")
    assert not list(tmp_path.rglob("fetching-*"))
