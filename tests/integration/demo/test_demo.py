"""`make demo-local` on real brokers, disks and agents: its output, and that it leaves nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.demo.conftest import RunScript
from tests.integration.demo.remains import remains_of, wait_until_nothing_remains

# Volumes as small as Kafka's segments allow: these are about the end, not about the show.
SMALL = """
import sys
from functools import partial
from testbed.demo.command import on_loopback, perform
from testbed.demo.plan import Plan
from testbed.loopback.volumes import MIB, VolumeSpec
roomy, small = (VolumeSpec(192 * MIB),) * 2, (VolumeSpec(128 * MIB),) * 2
plan = Plan(volumes={1: roomy, 2: roomy, 3: small}, pause_seconds=300)
sys.exit(perform(partial(on_loopback, plan=plan, protected=True)))
"""


def run_demo(*options: str, root: Path, callback_jar: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "LOOPBACK_KAFKA_ROOT": str(root),
        "LOOPBACK_KAFKA_CALLBACK_JAR": str(callback_jar),
    }
    return subprocess.run(
        [sys.executable, "-m", "testbed.demo", "--loopback", *options],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.mark.accepts("A6", "A7", "A9", "A10", "A13", "A17", "F28")
def test_a_disk_that_fills_by_replication_holds_producers_everywhere(root: Path, callback_jar: Path) -> None:
    played = run_demo(root=root, callback_jar=callback_jar)

    assert played.returncode == 0, played.stdout + played.stderr
    words = " ".join(played.stdout.split())
    seen = re.search(r"all brokers held and let go together((?: (?:OPEN|THROTTLE|PAUSE))+)", words)
    assert seen is not None, played.stdout
    states = seen[1].split()
    assert states[:3] == ["OPEN", "THROTTLE", "PAUSE"]
    assert "OPEN" in states[3:]  # the following data may soon fill the disk to its soft limit again
    scope = r"PAUSE for \d+ topics?(, THROTTLE for \d+ more)?"
    assert re.search(rf"{scope}: volume /dev/loop\d+ of broker 3 is over its hard limit", words)
    assert re.search(r"kept +nothing is written to orders in PAUSE +0B in 12 s", played.stdout)
    assert re.search(r"kept +payments keeps its rate in PAUSE +\S+MB/s, \d+% of \S+MB/s", played.stdout)
    assert "The promise was kept." in played.stdout
    assert max(len(line) for line in played.stdout.splitlines() if not line.startswith("logs")) <= 80
    assert remains_of(root) == [f"directory {root}"]
    assert list(root.iterdir()) == []


@pytest.mark.long
def test_without_kquota_the_same_load_fills_the_disk(root: Path, callback_jar: Path) -> None:
    played = run_demo("--unprotected", root=root, callback_jar=callback_jar)

    assert played.returncode == 0, played.stdout + played.stderr
    assert re.search(r"volume /dev/loop\d+ of broker 3 is full", played.stdout)
    assert "broker 3 takes log dir" in played.stdout
    errors = re.search(r'"No space left on device" in the brokers\' logs +(\d+)', played.stdout)
    assert errors is not None
    assert int(errors[1]) > 0
    assert list(root.iterdir()) == []


def test_without_root_the_demo_says_so_before_it_does_anything(root: Path) -> None:
    root.chmod(0o777)
    demo = "import os, sys; os.setuid(65534); sys.exit(testbed.demo.command.main(['--loopback']))"
    # The interpreter itself may be where only root can go: import as root, then drop the privileges.
    played = subprocess.run(
        [sys.executable, "-c", f"import testbed.demo.command; {demo}"],
        check=False,
        capture_output=True,
        text=True,
    )

    assert played.returncode == 2
    assert "root" in played.stderr
    assert len(played.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("moment", "signals"),
    [
        ("starting 3 Kafka", [signal.SIGINT]),
        pytest.param("starting an agent", [signal.SIGTERM], marks=pytest.mark.long),
        pytest.param("flat out", [signal.SIGINT, signal.SIGINT], marks=pytest.mark.long),
        pytest.param("hold producers", [signal.SIGINT], marks=pytest.mark.long),
    ],
)
def test_nothing_is_left_after_an_interruption_at(
    moment: str,
    signals: list[signal.Signals],
    run_script: RunScript,
    root: Path,
    callback_jar: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOOPBACK_KAFKA_ROOT", str(root))
    monkeypatch.setenv("LOOPBACK_KAFKA_CALLBACK_JAR", str(callback_jar))
    demo = run_script(SMALL)
    assert demo.stdout is not None
    output = []
    for line in demo.stdout:
        output.append(line)
        if moment in line:
            break
    (workspace,) = root.glob("kquota-*")

    for number in signals:
        os.killpg(demo.pid, number)
        time.sleep(0.1)

    rest = demo.stdout.read()
    assert demo.wait(timeout=60) not in (0, 1), "".join(output) + rest
    wait_until_nothing_remains(workspace)
    assert list(root.iterdir()) == []
