"""The daemon from start to stop, without a reachable cluster."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kquota.service.daemon import EXIT_CONFIGURATION, EXIT_FAILED, EXIT_OK, run
from testbed.loopback.ports import LOOPBACK, PortReservation
from tests.integration.waiting import eventually

UNHEARD_OF = "no.such.property"
_HARD = {"type": "MinFreePercentage", "level": 7}


class Machine:
    """A host with a broker's directories, and a daemon that runs in this process."""

    def __init__(self, root: Path, port: int) -> None:
        self.config, self._root = root / "agent.yml", root
        for name in ("kafka", "run", "broker", "state"):
            (root / name).mkdir(mode=0o755)
        (root / "server.properties").write_text(f"node.id=7\nlog.dirs={root}/kafka\n", "utf-8")
        self._address = f"{LOOPBACK}:{port}"

    @property
    def server_properties(self) -> Path:
        return self._root / "server.properties"

    @property
    def state(self) -> Path:
        return self._root / "state"

    @property
    def secret(self) -> Path:
        return self._root / "password"

    def configure(
        self,
        *,
        server_properties: str = "server.properties",
        with_secret: bool = False,
        limits_of: str | None = None,
        **kafka: str,
    ) -> None:
        if with_secret:
            self.secret.touch(0o600)
            self.secret.write_text("of no use", "utf-8")
        document = {
            "broker": {"server_properties": str(self._root / server_properties)},
            "kafka": {"bootstrap.servers": "127.0.0.1:1", **kafka},
            "decision_file": str(self._root / "run" / "decision.json"),
            "applied_file": str(self._root / "broker" / "applied.json"),
            "state_dir": str(self.state),
            "metrics": {"listen": self._address},
            "limits": {"volumes": {} if limits_of is None else {limits_of: {"hard": _HARD}}},
            "kafka_secrets": {"ssl.key.password": str(self.secret)} if with_secret else {},
        }
        self.config.write_text(json.dumps(document), "utf-8")  # YAML has JSON in it

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(f"http://{self._address}/metrics", timeout=60) as answer:
            found = re.search(rf"^{name} (\S+)$", answer.read().decode(), re.MULTILINE)
        assert found, name
        return float(found[1])

    def runs(self) -> bool:
        try:
            return self.metric("kquota_cycle_seconds_count") > 0
        except OSError:
            return False

    def run(self, meanwhile: Callable[[], None]) -> int:
        """Run the daemon until ``meanwhile`` has returned, which begins after its first cycle."""

        ended = threading.Event()

        def beside() -> None:
            try:
                if eventually(lambda: ended.is_set() or self.runs(), "it runs") and not ended.is_set():
                    meanwhile()
            finally:
                if not ended.is_set():
                    os.kill(os.getpid(), signal.SIGTERM)

        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(beside)
            code = run(self.config, {})
            ended.set()
            asked.result()
        return code


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with PortReservation() as ports:
        yield Machine(tmp_path, ports.reserve())


@pytest.mark.accepts("F34")
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({UNHEARD_OF: "1"}, UNHEARD_OF),
        ({"server_properties": "none.properties"}, "none.properties"),
        ({"limits_of": "/proc"}, "limits.volumes./proc is on no volume with a log dir of this broker"),
    ],
)
def test_a_configuration_that_only_fails_when_it_is_used_is_no_good_one(
    machine: Machine, capfd: pytest.CaptureFixture[str], bad: dict[str, str], said: str
) -> None:
    def reload() -> None:
        assert machine.metric("kquota_config_last_good") == 0
        machine.configure(**bad)
        os.kill(os.getpid(), signal.SIGHUP)
        eventually(lambda: machine.metric("kquota_config_last_good") == 1, "the reload is refused")
        assert machine.metric("kquota_config_reload_failures_total") == 1

    machine.configure()
    assert machine.run(reload) == EXIT_OK
    told = capfd.readouterr().err
    assert said in told
    assert "the one in force stays" in told

    def restarted() -> None:
        assert machine.metric("kquota_config_last_good") == 1
        machine.configure()
        os.kill(os.getpid(), signal.SIGHUP)
        eventually(lambda: machine.metric("kquota_config_last_good") == 0, "the good one is taken")

    assert machine.run(restarted) == EXIT_OK
    told = capfd.readouterr().err
    assert said in told
    assert "the last good one is used" in told


@pytest.mark.accepts("F34")
def test_at_the_first_start_it_ends_with_what_is_wrong(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.configure(**{UNHEARD_OF: "1"})
    assert run(machine.config, {}) == EXIT_CONFIGURATION
    assert UNHEARD_OF in capfd.readouterr().err
    machine.configure(limits_of="/proc")
    assert run(machine.config, {}) == EXIT_CONFIGURATION
    assert f"{machine.config} line 1: limits.volumes./proc is on no volume" in capfd.readouterr().err


@pytest.mark.accepts("F34")
def test_at_the_first_start_a_broken_server_properties_is_final(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.configure()
    machine.server_properties.write_text("node.id=7\nlog.dirs=/a,${env:B}\n", "utf-8")
    assert run(machine.config, {}) == EXIT_CONFIGURATION
    assert "log.dirs" in capfd.readouterr().err


@pytest.mark.accepts("F34")
def test_a_start_that_fails_after_a_good_one_is_tried_again(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.configure(with_secret=True)
    assert machine.run(lambda: None) == EXIT_OK
    good = machine.server_properties.read_text("utf-8")
    for damage, repair, said in (
        (
            lambda: machine.server_properties.write_text("node.id=7\nlog.dirs=/a,${env:B}\n", "utf-8"),
            lambda: machine.server_properties.write_text(good, "utf-8"),
            "log.dirs",
        ),
        (
            machine.server_properties.unlink,
            lambda: machine.server_properties.write_text(good, "utf-8"),
            "server.properties",
        ),
        (machine.secret.unlink, lambda: None, "ssl.key.password"),
    ):
        damage()
        capfd.readouterr()
        assert run(machine.config, {"STATE_DIRECTORY": str(machine.state)}) == EXIT_FAILED
        told = capfd.readouterr().err
        assert said in told
        assert "the last good one can't be used either" in told
        repair()
