"""A directory with Kafka's tools, as an installation of Kafka has them."""

from __future__ import annotations

import shlex
from pathlib import Path

from testbed.loopback.runtime import KafkaRuntime


def kafka_home(runtime: KafkaRuntime, directory: Path) -> Path:
    """Make a directory whose bin has the tool for reassignments; return it."""
    tool = directory / "bin" / "kafka-reassign-partitions.sh"
    tool.parent.mkdir(parents=True)
    java = [runtime.java, "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", runtime.class_path()]
    command = shlex.join([*java, "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"])
    tool.write_text(f'#!/bin/sh\nexec {command} "$@"\n', "utf-8")
    tool.chmod(0o755)
    return directory
