"""`make demo`: kquota rolled out on hosts of their own, the same verdict as on loopback, and nothing left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from testbed.hosts.fleet import Fleet, FleetFailed
from testbed.hosts.places import HOSTS
from testbed.loopback.workspace import members
from tests.fleet.conftest import REPOSITORY
from tests.fleet.test_hosts import PATIENCE_SECONDS, wait_until_nothing_remains

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


def start(*options: str) -> subprocess.Popen[str]:
    """The demonstration, as make starts it, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "testbed.demo", *options],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def fleet_number(demo: subprocess.Popen[str]) -> int:
    """The number of its fleet, as soon as there is one."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        with suppress(FleetFailed, ValueError):  # not yet, or being written
            return Fleet.open(f"demo-{demo.pid}").number
        assert time.monotonic() < deadline
        time.sleep(0.02)


def nothing_is_left(demo: subprocess.Popen[str], number: int) -> None:
    name = f"demo-{demo.pid}"
    wait_until_nothing_remains(name, number)
    assert members(HOSTS / name) == []


def play(*options: str) -> str:
    """Run to the end, and check that nothing is left; returns the output."""
    with start(*options) as demo:
        assert demo.stdout is not None
        try:
            output, number = "", -1
            for line in demo.stdout:
                output += line
                if number < 0 and "Kafka on each host" in line:
                    number = fleet_number(demo)
        except BaseException:
            os.killpg(demo.pid, signal.SIGINT)
            raise
    assert demo.returncode == 0, output
    nothing_is_left(demo, number)
    return output


@pytest.mark.accepts("A9", "A10", "A13")
def test_what_the_rollout_has_installed_holds_producers_everywhere(packages: Path):
    output = play()

    words = " ".join(output.split())
    seen = re.search(r"all brokers held and let go together((?: (?:OPEN|THROTTLE|PAUSE))+)", words)
    assert seen is not None, output
    states = seen[1].split()
    assert states[:3] == ["OPEN", "THROTTLE", "PAUSE"]
    assert "OPEN" in states[3:]
    scope = r"PAUSE for \d+ topics?(, THROTTLE for \d+ more)?"
    assert re.search(rf"{scope}: volume /dev/loop\d+ of broker 3 is over its hard limit", words)
    assert re.search(r"kept +nothing is written to orders in PAUSE +0B in 12 s", output)
    assert re.search(r"kept +payments keeps its rate in PAUSE +\S+MB/s, \d+% of \S+MB/s", output)
    assert "The promise was kept." in output
    for step in ("Kafka on each host", "playbooks/rollout.yml", "removing the hosts", "in all"):
        assert re.search(rf"(?m)^ *\d+ s  {re.escape(step)}$", output), step


def test_without_kquota_the_same_load_fills_the_disks_of_the_hosts():
    output = play("--unprotected")

    assert "rollout.yml" not in output
    assert re.search(r"volume /dev/loop\d+ of broker 3 is full", output)
    assert "broker 3 takes log dir disk-" in output
    assert "Without kquota the disks ran full." in output


@pytest.mark.parametrize(
    ("moment", "signals"),
    [
        ("booting 3 hosts", [signal.SIGINT]),
        ("Kafka on each host", [signal.SIGTERM]),
        ("rollout.yml", [signal.SIGINT, signal.SIGINT]),
    ],
)
def test_nothing_is_left_after_an_interruption_at(moment: str, signals: list[signal.Signals], packages: Path):
    with start() as demo:
        assert demo.stdout is not None
        output = ""
        for line in demo.stdout:
            output += line
            if moment in line:
                break
        number = fleet_number(demo)
        for one in signals:
            os.killpg(demo.pid, one)
            time.sleep(0.1)
        output += demo.stdout.read()
    assert demo.returncode not in (0, 1), output
    nothing_is_left(demo, number)
