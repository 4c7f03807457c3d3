"""Log dirs that are lost: those of brokers that are down, and those that a running broker has given up."""

from __future__ import annotations

import json
import subprocess

from conformance.system import Place, Report
from testbed.loopback.runtime import KafkaRuntime

_TOOL = "org.apache.kafka.tools.LogDirsCommand"
_TOOL_SECONDS = 45.0


def lost_log_dirs(place: Place, runtime: KafkaRuntime, report: Report) -> int:
    """Return how many log dirs are lost now; those of running brokers by Kafka's own tool."""
    lost = sum(len(broker.volumes) for broker in place.brokers.values() if not broker.running())
    running = ",".join(str(broker_id) for broker_id, broker in place.brokers.items() if broker.running())
    if not running:
        return lost
    command = [runtime.java, "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", runtime.class_path(), _TOOL]
    command += ["--bootstrap-server", place.bootstrap_servers, "--describe", "--broker-list", running]
    try:
        done = subprocess.run(
            command,
            env=place.environment(),
            capture_output=True,
            text=True,
            timeout=_TOOL_SECONDS,
            check=True,
        )
        return lost + errors_in(done.stdout)
    except (subprocess.SubprocessError, ValueError) as error:
        report(f"the log dirs of running brokers are not known: {error}")
        return lost


def errors_in(output: str) -> int:
    """Return how many log dirs have an error, by the tool's output.

    Raises:
        ValueError: there is no answer in it.
    """
    answers = [line for line in output.splitlines() if line.startswith("{")]
    if not answers:
        raise ValueError(f"no answer in {output[-500:]!r}")
    brokers = json.loads(answers[-1])["brokers"]
    return sum(log_dir["error"] is not None for broker in brokers for log_dir in broker["logDirs"])
