"""`kquota config init` on a host with a broker's process: what it writes, and what it refuses."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

Init = Callable[..., subprocess.CompletedProcess[str]]
WAITS = "import sys; print(flush=True); sys.stdin.read()"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    path = tmp_path / "server.properties"
    path.write_text(f"log.dirs={tmp_path}/data\nlisteners=PLAINTEXT://:9095\n")
    return path


@pytest.fixture
def init(tmp_path: Path, file: Path) -> Init:
    def run(*options: str) -> subprocess.CompletedProcess[str]:
        named = ("--config", str(tmp_path / "agent.yml"), "--server-properties", str(file), "--user", "root")
        command = [sys.executable, "-m", "kquota", "config", "init", *named, *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def start_broker(stack: ExitStack, file: Path, *overrides: str) -> None:
    """Start a process with a broker's command line; it ends with the test."""
    command = [sys.executable, "-c", WAITS, "kafka.Kafka", str(file)]
    for override in overrides:
        command += ["--override", override]
    process = stack.enter_context(
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    )
    assert process.stdout is not None
    process.stdout.readline()


def test_the_running_broker_is_found_and_the_agent_can_start(
    init: Init, file: Path, tmp_path: Path, stack: ExitStack
) -> None:
    start_broker(stack, file, "node.id=7", "listeners=PLAINTEXT://broker:9097")
    said = init()
    assert (said.returncode, said.stderr) == (0, "")
    config = tmp_path / "agent.yml"
    assert said.stdout.splitlines() == [
        f"found broker 7, {file}, directories {tmp_path}/data",
        "found listener PLAINTEXT (PLAINTEXT) at broker:9097",
        f"wrote {config}: the agent observes, and holds no producer",
        f"next: kquota run --config {config}, then kquota status --config {config}",
    ]
    assert yaml.safe_load(config.read_text()) == {
        "broker": {"server_properties": str(file), "node_id": 7},
        "kafka": {"bootstrap.servers": "broker:9097"},
    }
    assert stat.S_IMODE(config.stat().st_mode) == 0o640
    checked = subprocess.run(
        [sys.executable, "-m", "kquota", "config", "check", "--config", config],
        check=False,
        capture_output=True,
    )
    assert checked.returncode == 0


@pytest.mark.parametrize(("written", "named"), [("", 7), ("node.id=4\n", 7), ("node.id=7\n", None)])
def test_a_node_id_is_named_where_the_file_does_not_have_it(
    init: Init, file: Path, tmp_path: Path, stack: ExitStack, written: str, named: int | None
) -> None:
    file.write_text(file.read_text() + written)
    start_broker(stack, file, "node.id=7")
    assert init().returncode == 0
    assert yaml.safe_load((tmp_path / "agent.yml").read_text())["broker"].get("node_id") == named


def test_a_file_that_is_there_stays_without_force(init: Init, file: Path, tmp_path: Path) -> None:
    file.write_text(file.read_text() + "node.id=4\n")
    config = tmp_path / "agent.yml"
    config.write_text("mine\n")
    said = init()
    assert said.returncode == 1
    exists = "exists: kquota config check checks it, and --force replaces it"
    assert said.stderr == f"kquota: {config} {exists}\n"
    assert config.read_text() == "mine\n"
    assert init("--force").returncode == 0
    assert yaml.safe_load(config.read_text())["kafka"] == {"bootstrap.servers": "localhost:9095"}


def test_what_the_agent_could_not_watch_is_refused(
    init: Init, file: Path, tmp_path: Path, stack: ExitStack
) -> None:
    (tmp_path / "other").mkdir()
    start_broker(stack, file, "node.id=7", f"log.dirs={tmp_path}/other")
    said = init()
    assert said.returncode == 78
    assert "write them into the file" in said.stderr
    assert not (tmp_path / "agent.yml").exists()


def test_log_dirs_that_are_missing_are_named(init: Init, file: Path, tmp_path: Path) -> None:
    file.write_text(file.read_text() + "node.id=4\n")
    (tmp_path / "data").rmdir()
    said = init()
    assert said.returncode == 1
    assert f"{tmp_path}/data" in said.stderr
    assert not (tmp_path / "agent.yml").exists()


def test_the_files_for_tls_are_named(init: Init, file: Path) -> None:
    file.write_text(
        file.read_text().replace("PLAINTEXT://:9095", "SSL://b:9095")
        + "node.id=4\nssl.client.auth=required\n"
    )
    said = init()
    assert said.returncode == 0
    for name in ("ca.pem", "agent.pem", "agent.key"):
        assert f" in /etc/kquota/tls/{name}" in said.stdout
