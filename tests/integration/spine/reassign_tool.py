"""Kafka's own tool for reassignments, as an operator has it on PATH."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.loopback.cluster import KafkaCluster
from testbed.loopback.plug_in import OPERATOR
from testbed.loopback.runtime import KafkaRuntime

NAME = "kafka-reassign-partitions.sh"
_REASSIGNED = re.compile(r"^(\S+-\d+): replicas: ", re.MULTILINE)


@dataclass
class ReassignTool:
    """The tool in a directory of its own, for one cluster."""

    directory: Path
    bootstrap: str

    @classmethod
    def of(cls, runtime: KafkaRuntime, directory: Path, cluster: KafkaCluster) -> ReassignTool:
        """Make the directory, with the tool and an operator's properties in it."""
        directory.mkdir()
        authority = Path(cluster.client_configuration(OPERATOR)["ssl.ca.location"])
        (directory / "operator.properties").write_text(
            "security.protocol=SSL\nssl.truststore.type=PEM\nssl.keystore.type=PEM\n"
            f"ssl.truststore.location={authority}\n"
            f"ssl.keystore.location={authority.parent / f'{OPERATOR}.keystore.pem'}\n",
            "utf-8",
        )
        java = [runtime.java, "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", runtime.class_path()]
        command = shlex.join([*java, "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"])
        (directory / NAME).write_text(f'#!/bin/sh\nexec {command} "$@"\n', "utf-8")
        (directory / NAME).chmod(0o755)
        return cls(directory, cluster.client_configuration()["bootstrap.servers"])

    def run(self, command: str) -> str:
        """Run a command line in the directory, with the tool on PATH; return what it printed."""
        path = f"{self.directory}:{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.directory,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def reassigned(self) -> set[str]:
        """The partitions that are being reassigned between brokers."""
        return set(_REASSIGNED.findall(self._run("--list")))

    def execute(self, brokers: Mapping[str, list[int]], throttle: int | None = None) -> None:
        """Begin to move partitions to brokers, as well as what is under way."""
        bound = [] if throttle is None else ["--throttle", str(throttle)]
        self._run("--execute", "--additional", *bound, brokers=brokers)

    def cancel(self, brokers: Mapping[str, list[int]]) -> None:
        """End these moves."""
        self._run("--cancel", "--preserve-throttles", brokers=brokers)

    def verify(self, brokers: Mapping[str, list[int]]) -> None:
        """Take their throttle back."""
        self._run("--verify", brokers=brokers)

    def _run(self, *arguments: str, brokers: Mapping[str, list[int]] | None = None) -> str:
        command = [NAME, "--bootstrap-server", self.bootstrap, *arguments]
        if brokers is not None:
            named = ((name.rpartition("-"), ids) for name, ids in brokers.items())
            partitions = [{"topic": t, "partition": int(n), "replicas": ids} for (t, _, n), ids in named]
            file = self.directory / "moves.json"
            file.write_text(json.dumps({"version": 1, "partitions": partitions}), "utf-8")
            command += ["--reassignment-json-file", str(file)]
        return self.run(shlex.join(command))
