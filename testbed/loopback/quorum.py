"""The voters of a dynamic quorum, through Kafka's own tool: librdkafka has no request for them."""

from __future__ import annotations

import json
import re
import subprocess

from testbed.loopback.cluster import KafkaCluster
from testbed.loopback.runtime import KafkaRuntime

_PATIENCE_SECONDS = 120
_VOTERS = re.compile(r"^CurrentVoters:\s*(.*)$", re.MULTILINE)


class QuorumUnchanged(Exception):
    """The tool did not do what it was asked for; the message has its output."""


class MetadataQuorum:
    """The voters of a cluster; each change waits until it is in force."""

    def __init__(self, cluster: KafkaCluster, runtime: KafkaRuntime) -> None:
        self._cluster, self._runtime = cluster, runtime

    def voters(self) -> dict[int, str]:
        """The ids of the voters, with those of their metadata log dirs.

        Raises:
            QuorumUnchanged: the cluster can't be asked.
        """
        found = _VOTERS.search(self._run("describe", "--status"))
        if found is None:
            raise QuorumUnchanged("the tool lists no voters")
        return {int(voter["id"]): str(voter["directoryId"]) for voter in json.loads(found[1])}

    def add(self, node_id: int) -> None:
        """Make a running controller a voter.

        Raises:
            QuorumUnchanged: it is not one afterwards, such as one that has not read the metadata yet.
        """
        self._run("add-controller", of=node_id)

    def remove(self, node_id: int) -> None:
        """Make a voter an observer.

        Raises:
            QuorumUnchanged: it still is one.
        """
        directory_id = self.voters()[node_id]
        self._run(
            "remove-controller",
            *("--controller-id", str(node_id), "--controller-directory-id", directory_id),
        )

    def _run(self, *arguments: str, of: int | None = None) -> str:
        """Run the tool, with the configuration of a node if the command is about it."""
        settings = self._cluster.nodes[of].layout.server_properties if of is not None else None
        done = subprocess.run(
            [
                *(self._runtime.java, "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp"),
                *(self._runtime.class_path(), "org.apache.kafka.tools.MetadataQuorumCommand"),
                *("--bootstrap-server", self._cluster.bootstrap_servers),
                *(("--command-config", str(settings)) if settings is not None else ()),
                *arguments,
            ],
            check=False,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            env=self._cluster.environment(),
        )
        if done.returncode != 0:
            raise QuorumUnchanged(f"{' '.join(arguments)}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
        return done.stdout
