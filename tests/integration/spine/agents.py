"""An agent as systemd would run it: `kquota run` as a process of its own, with a notification socket."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from testbed.loopback.cluster import KafkaCluster
from testbed.loopback.plug_in import OPERATOR, agent_name, broker_files, write_operator_properties
from testbed.loopback.processes import ChildProcess
from tests.integration.waiting import eventually
from tests.unit.wording import say

KQUOTA = [sys.executable, "-m", "kquota"]
ORDERS = ("hold", "quarantine", "maintenance", "decommission", "orders")
_LINE = re.compile(r"\S+Z (?P<level>[A-Z]+) (?P<sentence>.*)")
_WATCHDOG_SECONDS = 30
_UNIT = Path(__file__).resolve().parents[3] / "packaging" / "systemd" / "kquota-agent.service"
UNIT_ENVIRONMENT = dict(re.findall(r"^Environment=(\w+)=(\S+)$", _UNIT.read_text("utf-8"), re.MULTILINE))
"""The environment that the unit sets."""


def read_json(path: Path) -> dict[str, Any] | None:
    """A file that is replaced atomically; None while there is none."""
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return None


class NotificationSocket:
    """The notifications for systemd; a thread reads them, because a full socket would hold up the agent."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._heard: list[dict[str, str]] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path.unlink(missing_ok=True)
        self._socket.bind(str(path))
        self._thread = threading.Thread(target=self._listen, name=f"notifications {path}", daemon=True)
        self._thread.start()

    @property
    def heard(self) -> list[dict[str, str]]:
        """The messages so far, oldest first, as names with values."""
        return list(self._heard)

    def close(self) -> None:
        """Stop listening."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _listen(self) -> None:
        while message := self._socket.recv(65_536):
            self._heard.append(dict(line.split("=", 1) for line in message.decode().splitlines()))


class AgentProcess:
    """The agent of one broker of a loopback cluster; a ``clone`` of it has files of its own."""

    def __init__(
        self,
        cluster: KafkaCluster,
        broker_id: int,
        metrics_port: int,
        settings: Mapping[str, Any],
        clone: str = "",
    ) -> None:
        self.broker_id = broker_id
        self.layout = cluster.nodes[broker_id].layout
        self.directory = self.layout.directory / clone
        self.directory.mkdir(exist_ok=True)
        self.config = self.directory / "agent.yml"
        self.state_dir = self.directory / "kquota-state"
        self.state_dir.mkdir()
        self.decision_path = self.directory / "kquota" / "decision.json"
        self.decision_path.parent.mkdir(mode=0o755, exist_ok=True)
        self.log_path = self.directory / "agent.log"
        self.launcher: tuple[str, ...] = ()
        """The command that starts it elsewhere than the test runs; empty to run there."""
        self.metrics_port = metrics_port
        self.settings: dict[str, Any] = {
            "broker": {"server_properties": str(self.layout.server_properties)},
            "kafka": cluster.client_configuration(agent_name(broker_id)),
            "decision_file": str(self.decision_path),
            "applied_file": str(broker_files(self.layout).applied),
            "state_dir": str(self.state_dir),
            "metrics": {"listen": f"127.0.0.1:{metrics_port}"},
            **settings,
        }
        self.operator = write_operator_properties(
            self.directory / "operator.properties", cluster.client_configuration(OPERATOR)
        )
        """The client properties of who gives orders."""
        self.notifications = NotificationSocket(self.directory / "notify")
        # The settings' own namespace must be the agent's alone.
        self.environment = {
            name: value for name, value in cluster.environment().items() if not name.startswith("KQUOTA_")
        }
        self._process: ChildProcess | None = None
        self.write_config()

    @property
    def process(self) -> ChildProcess:
        """The process that was started last."""
        assert self._process is not None
        return self._process

    def write_config(self, **changes: Any) -> None:
        """Write agent.yml; changed values stay so."""
        self.settings |= changes
        self.config.write_text(yaml.safe_dump(self.settings, sort_keys=False), "utf-8")

    def start(self, **environment: str) -> None:
        """Start it; returns at once."""
        self._process = ChildProcess(
            [*self.launcher, *KQUOTA, "run", "--config", str(self.config)],
            log_path=self.log_path,
            environment={
                **self.environment,
                **UNIT_ENVIRONMENT,
                "NOTIFY_SOCKET": str(self.notifications.path),
                "WATCHDOG_USEC": str(_WATCHDOG_SECONDS * 1_000_000),
                **environment,
            },
        )

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        return self.process.terminate(60.0)

    def kill(self) -> None:
        """SIGKILL, as the out-of-memory killer would."""
        self.process.kill()

    def close(self) -> None:
        """End it, however it is."""
        if self._process is not None:
            self._process.send(signal.SIGCONT)
            self._process.kill()
        self.notifications.close()

    def reload(self, **changes: Any) -> None:
        """Change the configuration, send SIGHUP and wait until it is in force."""
        mark = self.journal_mark()
        self.write_config(**changes)
        self.process.send(signal.SIGHUP)
        eventually(lambda: self.told(say("configuration-reread"), since=mark), f"{self} has read it again")

    def cli(self, *arguments: str, **run_options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command of `kquota` with this agent's configuration; an order with an operator's."""
        operator = ("--command-config", str(self.operator)) if arguments[0] in ORDERS else ()
        return subprocess.run(
            [*KQUOTA, *arguments, "--config", str(self.config), *operator],
            env=self.environment | {"COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
            **{"timeout": 60, **run_options},
        )

    def order(self, *arguments: str) -> str:
        """Run a command that must succeed; return its output."""
        done = self.cli(*arguments)
        assert done.returncode == 0, f"kquota {' '.join(arguments)}: {done.returncode}\n{done.stderr}"
        return done.stdout

    @property
    def decision(self) -> dict[str, Any] | None:
        """The decision file's content."""
        return read_json(self.decision_path)

    @property
    def applied(self) -> dict[str, Any] | None:
        """The content of the plug-in's applied-state file."""
        return read_json(broker_files(self.layout).applied)

    @property
    def state(self) -> str | None:
        """The state that is decided."""
        return None if self.decision is None else str(self.decision["state"])

    @property
    def applied_state(self) -> str | None:
        """The state that the plug-in applies, where it enforces."""
        applied = self.applied
        return None if applied is None or applied["mode"] != "enforce" else str(applied["state"])

    def journal_mark(self) -> int:
        """A place in the journal: its end as of now."""
        return self.log_path.stat().st_size if self.log_path.exists() else 0

    def journal(self, since: int = 0) -> list[tuple[str, str]]:
        """Level and sentence of each entry."""
        text = self.log_path.read_bytes()[since:].decode() if self.log_path.exists() else ""
        return [(m["level"], m["sentence"]) for line in text.splitlines() if (m := _LINE.match(line))]

    def told(self, part: str, since: int = 0) -> list[tuple[str, str]]:
        """The entries that hold a text."""
        return [entry for entry in self.journal(since) if part in entry[1]]

    def await_entry(self, level: str, sentence: str, since: int = 0) -> None:
        """Wait for an entry of the journal: it is written a moment after the decision that it describes."""
        eventually(lambda: (level, sentence) in self.journal(since), f"{self} says: {sentence}")

    def states_told(self, since: int = 0) -> list[str]:
        """The state of each change of decision, oldest first: every one is in the journal."""
        found = (re.match(r"(OPEN|THROTTLE|PAUSE)\b.*: ", sentence) for _, sentence in self.journal(since))
        return [match[1] for match in found if match]

    def states_passed(self, since: int = 0) -> list[str]:
        """The states that it has gone through, whatever else was news meanwhile."""
        return [state for state, _ in groupby(self.states_told(since))]

    def await_passed(self, *states: str, since: int) -> None:
        """Wait until its journal has these states and no others; it follows the decision by a moment.

        The first OPEN of an agent that had just been started is none of them.
        """
        passed: list[str] = []

        def has_them() -> bool:
            passed[:] = self.states_passed(since)
            if passed[:1] == ["OPEN"] and states[0] != "OPEN":
                del passed[0]
            return len(passed) >= len(states)

        eventually(has_them, f"{self} logs {states}")
        assert passed == list(states), f"{self}"

    def files(self) -> dict[str, str]:
        """Its files by now: its decision and its state, by path."""
        texts = {}
        for path in (self.decision_path, *self.state_dir.iterdir()):
            with suppress(FileNotFoundError):  # a file that was about to replace another one
                texts[str(path)] = path.read_text("utf-8")
        return texts

    def metrics_text(self) -> str:
        """The answer of the HTTP endpoint."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=60) as answer:
            return str(answer.read().decode())

    def metrics(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        """The answer of the HTTP endpoint, by name and labels."""
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(self.metrics_text())
            for sample in family.samples
        }

    def metric(self, name: str, **labels: str) -> float | None:
        """One value; None where there is no such series."""
        return self.metrics().get((name, frozenset(labels.items())))

    def await_metric(self, expected: float, name: str, **labels: str) -> None:
        """Wait for a value: metrics, too, follow the decision by a moment."""
        eventually(
            lambda: self.metric(name, **labels) == expected, f"{name} {labels} is {expected} at {self}"
        )

    def log_tail(self) -> str:
        """The end of its journal, for messages."""
        return (
            "\n".join(self.log_path.read_text("utf-8").splitlines()[-40:]) if self.log_path.exists() else ""
        )

    def __repr__(self) -> str:
        return f"the agent of broker {self.broker_id} (pid {self._process.pid if self._process else '-'})"


def uptime_ms() -> int:
    """The clock of leases."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
