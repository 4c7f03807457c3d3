"""Nodes take Kafka's classes from an archive, which is made once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.loopback.class_archive import ensure_class_archive
from testbed.loopback.cluster import ClusterSpec
from testbed.loopback.runtime import KafkaRuntime
from tests.integration.conftest import StartCluster


@pytest.mark.long
def test_a_node_takes_kafka_s_classes_from_the_archive(
    kafka_runtime: KafkaRuntime, start_cluster: StartCluster, callback_jar: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    assert ensure_class_archive(kafka_runtime, report=said.append)
    assert ensure_class_archive(kafka_runtime, report=said.append)
    assert len(said) <= 1, "it is made once"
    told = tmp_path / "classes"
    options = (f"-Xlog:class+load:file={told}",)

    # With a further jar, as most tests have one.
    spec = replace(ClusterSpec.of(1, jvm_options=options), class_path=(callback_jar,))
    start_cluster(spec)

    loaded = [line for line in told.read_text("utf-8").splitlines() if " org.apache.kafka." in line]
    archived = [line for line in loaded if "shared objects file (top)" in line]
    print(f"{len(archived)} of {len(loaded)} classes are from the archive")
    assert len(archived) > 0.8 * len(loaded) > 500


def test_an_archive_is_for_one_java(kafka_runtime: KafkaRuntime, tmp_path: Path) -> None:
    other = tmp_path / "java"
    other.write_text("")
    assert replace(kafka_runtime, java=str(other)).archive != kafka_runtime.archive
