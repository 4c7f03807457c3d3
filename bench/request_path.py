"""The cost of the plug-in on the request path (JMH) and in its own thread: programs in `request-path/`."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

from bench.bounds import POLL_SECONDS
from bench.figures import Poll, QuotaThread, RequestCost
from bench.maven import maven, run
from bench.systems import write_decision
from testbed.loopback.callback_jar import find_callback_jar
from testbed.loopback.runtime import KafkaRuntime, RuntimeUnavailable

POLLED_CLIENTS = 10_000
_MODULE = Path(__file__).with_name("request-path")
_WATCHED_SECONDS = 10
_POLLED_STATES = {"OPEN": Fraction(1), "THROTTLE": Fraction(1, 2), "PAUSE": Fraction(0)}
_JVM_OPTIONS = ("-Xmx1g", "-XX:+UseSerialGC", "-XX:-UsePerfData")


def request_path(runtime: KafkaRuntime, *, forks: int, iterations: int) -> list[RequestCost]:
    """Metering one request, by who meters and how many clients take turns."""
    with _decision_directory() as directory:
        measured = _jmh(runtime, "RequestPath", directory, forks=forks, iterations=iterations)
    return [
        _cost("request path", f"{int(entry['params']['clients']):,} clients", entry) for entry in measured
    ]


def quota_path(runtime: KafkaRuntime, *, forks: int, iterations: int) -> list[RequestCost | QuotaThread]:
    """One request before and after its append with very many quotas, groups and topics, by called code."""
    with _decision_directory() as directory:
        measured = _jmh(runtime, "QuotaPath", directory, forks=forks, iterations=iterations)
        (threads,) = _thread_costs(runtime, directory, 0, [Fraction(1)])
    costs = [_cost("many quotas", entry["benchmark"].rpartition(".")[2], entry) for entry in measured]
    return [*costs, *(QuotaThread(name, used) for name, used in threads.items())]


def polls(runtime: KafkaRuntime) -> list[Poll]:
    """The cost of a look of the governor with many clients, in each state."""
    with _decision_directory() as directory:
        costs = _thread_costs(runtime, directory, POLLED_CLIENTS, _POLLED_STATES.values())
        return [
            Poll(state, POLLED_CLIENTS, cost["decisions"] * POLL_SECONDS)
            for state, cost in zip(_POLLED_STATES, costs, strict=True)
        ]


def _jmh(
    runtime: KafkaRuntime, name: str, directory: Path, *, forks: int, iterations: int
) -> list[dict[str, Any]]:
    _decide(directory, Fraction(1))
    report = directory / "jmh.json"
    jvm = [*_JVM_OPTIONS, f"-Dbench.directory={directory}"]
    command = [runtime.java, "-cp", _class_path(runtime), "org.openjdk.jmh.Main", rf"\.{name}\."]
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


def _thread_costs(
    runtime: KafkaRuntime, directory: Path, clients: int, factors: Iterable[Fraction]
) -> list[dict[str, float]]:
    """Milliseconds per second of each of the plug-in's own threads, with each of these throttle factors."""
    _decide(directory, Fraction(1))
    command = [runtime.java, *_JVM_OPTIONS, "-cp", _class_path(runtime), "org.kquota.bench.ThreadCost"]
    command += [str(directory), str(clients), str(_WATCHED_SECONDS)]
    found = []
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for factor in factors:
            _decide(directory, factor)
            process.stdin.write("measure\n")
            process.stdin.flush()
            # A logger may print lines before.
            line = next((line for line in process.stdout if line.startswith("{")), None)
            if line is None:
                raise RuntimeUnavailable("ThreadCost ended before it had measured")
            found.append(json.loads(line))
    return found


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
    write_decision(directory / "decision" / "decision.json", factor, cluster_id="bench")
