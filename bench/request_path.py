"""The cost of the plug-in on the request path (JMH) and in its own thread: programs in `request-path/`."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

from bench.figures import Poll, QuotaThread, RequestCost
from bench.maven import maven, run
from bench.systems import write_decision
from kquota.write.decision_file import DecisionFile
from testbed.loopback.callback_jar import find_callback_jar
from testbed.loopback.runtime import KafkaRuntime, RuntimeUnavailable

POLLED_CLIENTS = 10_000
_MODULE = Path(__file__).with_name("request-path")
_POLL_SECONDS = 10
_POLLED_STATES = (("OPEN", Fraction(1)), ("THROTTLE", Fraction(1, 2)), ("PAUSE", Fraction(0)))
_JVM_OPTIONS = ("-Xmx1g", "-XX:+UseSerialGC", "-XX:-UsePerfData")


def request_path(runtime: KafkaRuntime, *, forks: int, iterations: int) -> list[RequestCost]:
    """Metering one request, by who meters and how many clients take turns."""
    with _decision_directory() as directory:
        class_path = _class_path(runtime)
        measured = _jmh(runtime, "RequestPath", class_path, directory, forks=forks, iterations=iterations)
    return [
        _cost("request path", f"{int(entry['params']['clients']):,} clients", entry) for entry in measured
    ]


def quota_path(runtime: KafkaRuntime, *, forks: int, iterations: int) -> list[RequestCost | QuotaThread]:
    """One request before and after its append with very many quotas, groups and topics, by called code."""
    with _decision_directory() as directory:
        class_path = _class_path(runtime)
        measured = _jmh(runtime, "QuotaPath", class_path, directory, forks=forks, iterations=iterations)
        report = [runtime.java, *_JVM_OPTIONS, "-cp", class_path, "org.kquota.bench.ReportCost"]
        told = run([*report, str(directory), str(_POLL_SECONDS)]).splitlines()
        threads = json.loads(_json_line(told, "ReportCost"))
    costs = [_cost("many quotas", entry["benchmark"].rpartition(".")[2], entry) for entry in measured]
    return [*costs, *(QuotaThread(name, used) for name, used in threads.items())]


def _jmh(
    runtime: KafkaRuntime, name: str, class_path: str, directory: Path, *, forks: int, iterations: int
) -> list[dict[str, Any]]:
    _decide(directory, Fraction(1))
    report = directory / "jmh.json"
    jvm = [*_JVM_OPTIONS, f"-Dbench.directory={directory}"]
    command = [runtime.java, "-cp", class_path, "org.openjdk.jmh.Main", rf"\.{name}\."]
    command += ["-f", str(forks), "-wi", "5", "-w", "1", "-i", str(iterations), "-r", "1"]
    command += ["-jvmArgs", " ".join(jvm), "-rf", "json", "-rff", str(report)]
    run(command)
    measured: list[dict[str, Any]] = json.loads(report.read_text("utf-8"))
    return measured


def _cost(path: str, what: str, measured: Mapping[str, Any]) -> RequestCost:
    """Median and spread of each iteration's count: the clock means little if other programs compute, too."""
    used, requests = (
        [count for fork in measured["secondaryMetrics"][name]["rawData"] for count in fork]
        for name in ("processorNanos", "requests")
    )
    costs = sorted(nanos / count for nanos, count in zip(used, requests, strict=True))
    who = measured["params"]["kind"].lower().replace("_", " ")
    return RequestCost(path, who, what, median(costs), (costs[-1] - costs[0]) / 2)


def polls(runtime: KafkaRuntime) -> list[Poll]:
    """The cost of a look of the governor with many clients, in each state."""
    class_path = _class_path(runtime)
    found = []
    with _decision_directory() as directory:
        _decide(directory, Fraction(1))
        command = [runtime.java, *_JVM_OPTIONS, "-cp", class_path, "org.kquota.bench.PollCost"]
        command += [str(directory), str(POLLED_CLIENTS), str(_POLL_SECONDS)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for state, factor in _POLLED_STATES:
                _decide(directory, factor)
                process.stdin.write("measure\n")
                process.stdin.flush()
                document = json.loads(_json_line(process.stdout, "PollCost"))
                found.append(Poll(state, document["clients"], document["milliseconds"]))
    return found


def _json_line(lines: Iterable[str], program: str) -> str:
    for line in lines:  # a logger may print lines before
        if line.startswith("{"):
            return line
    raise RuntimeUnavailable(f"{program} ended before it had measured")


def _class_path(runtime: KafkaRuntime) -> str:
    maven(_MODULE / "pom.xml", "package")
    built = [_MODULE / "target" / "classes", *sorted((_MODULE / "target" / "dependency").glob("*.jar"))]
    return runtime.class_path(*built, find_callback_jar())


@contextmanager
def _decision_directory() -> Iterator[Path]:
    """A directory as the plug-in accepts it, with room for what it writes itself."""
    with tempfile.TemporaryDirectory(prefix="kquota-bench-") as made:
        directory = Path(made)
        for name in ("decision", "applied"):
            (directory / name).mkdir(mode=0o755)
        yield directory


def _decide(directory: Path, factor: Fraction) -> None:
    """Write a decision for broker 1 of the cluster "bench"."""
    write_decision(
        DecisionFile(directory / "decision" / "decision.json"),
        factor,
        cluster_id="bench",
        sequence=time.monotonic_ns(),
    )
