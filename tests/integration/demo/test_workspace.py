"""No process, mount, loop device or file outlives the owner of a workspace, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from testbed.loopback.processes import ChildProcess
from testbed.loopback.volumes import MIB, VolumeSpec, make_loop_volume
from testbed.loopback.workspace import Workspace, clear, clear_abandoned, members
from tests.integration.demo.conftest import RunScript
from tests.integration.demo.remains import remains_of, wait_until_nothing_remains
from tests.integration.waiting import eventually

OWNER = """
import os, signal, subprocess, time
from pathlib import Path
from testbed.loopback.processes import ChildProcess
from testbed.loopback.volumes import MIB, VolumeSpec, make_loop_volume
from testbed.loopback.workspace import Workspace

# `nohup make test` lets children ignore it.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
with Workspace(Path(os.environ["ROOT"])) as workspace:
    volume = make_loop_volume(VolumeSpec(16 * MIB), workspace.path / "disk.img", workspace.path / "disk")
    # A grandchild in a session of its own that keeps a file on the volume open, and its parent is gone.
    subprocess.run(
        ["setsid", "--fork", "sh", "-c", f"exec sleep 300 > {volume.mount_point}/held"],
        env=workspace.environment(),
        check=True,
    )
    log, environment = workspace.path / "log", workspace.environment()
    child = ChildProcess(["sleep", "300"], log_path=log, environment=environment)
    while not (volume.mount_point / "held").exists():
        time.sleep(0.01)
    print(workspace.path)
    time.sleep(300)
"""


def started_owner(run_script: RunScript) -> tuple[subprocess.Popen[str], Path]:
    owner = run_script(OWNER)
    assert owner.stdout is not None
    path = Path(owner.stdout.readline().strip())
    assert path.is_dir()
    # The shell has made its file, but a process that replaces itself just now has no environment to see.
    eventually(lambda: len(members(path)) == 2, "two processes with the mark of the workspace")
    return owner, path


def janitor_of(owner: subprocess.Popen[str]) -> psutil.Process:
    (janitor,) = [
        child
        for child in psutil.Process(owner.pid).children()
        if "testbed.loopback.janitor" in child.cmdline()
    ]
    return janitor


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_outlives_an_owner_ended_by(number: signal.Signals, run_script: RunScript) -> None:
    owner, path = started_owner(run_script)

    os.killpg(owner.pid, number)

    assert owner.wait(timeout=60) != 0
    wait_until_nothing_remains(path)


def test_the_next_owner_clears_up_after_owner_and_janitor_were_killed(
    run_script: RunScript, root: Path
) -> None:
    owner, path = started_owner(run_script)
    janitor = janitor_of(owner)
    janitor.kill()
    owner.kill()
    owner.wait()
    assert any(line.startswith("mount") for line in remains_of(path))

    with Workspace(root) as workspace:
        assert remains_of(path) == []
    assert remains_of(workspace.path) == []


def test_what_goes_at_the_first_slow_attempt_has_not_resisted(root: Path) -> None:
    with Workspace(root) as workspace:
        log, environment = workspace.path / "log", workspace.environment()
        child = ChildProcess(["sleep", "300"], log_path=log, environment=environment)
        # While it becomes `sleep`, it has no environment, and only the second attempt would find it.
        eventually(
            lambda: psutil.Process(child.pid).name() == "sleep" and members(workspace.path),
            "it carries the mark of the workspace",
        )
        attempt_outlasts_seconds = 0.0005

        assert clear(workspace.path, keep_files=True, patience_seconds=attempt_outlasts_seconds) == []

        assert child.popen.wait(timeout=60) == -signal.SIGKILL


def test_an_exception_leaves_nothing(root: Path) -> None:
    workspace = Workspace(root)
    started: list[ChildProcess] = []

    def fail_in_it() -> None:
        with workspace:
            make_loop_volume(VolumeSpec(16 * MIB), workspace.path / "disk.img", workspace.path / "disk")
            log, environment = workspace.path / "log", workspace.environment()
            started.append(ChildProcess(["sleep", "300"], log_path=log, environment=environment))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_in_it()

    assert remains_of(workspace.path) == []
    assert started[0].popen.wait(timeout=60) == -signal.SIGKILL
    assert list(root.iterdir()) == []


def test_a_workspace_in_use_is_left_alone(root: Path) -> None:
    with Workspace(root) as mine:
        assert clear_abandoned(root) == []
        with Workspace(root) as other:
            assert other.path != mine.path
        assert mine.path.is_dir()


def test_a_directory_of_the_same_name_that_is_no_workspace_is_left_alone(root: Path) -> None:
    precious = root / "kquota-precious"
    precious.mkdir()
    (root / "kquota-link").symlink_to(precious)

    with Workspace(root):
        pass

    assert precious.is_dir()


def test_kept_files_stay_and_everything_else_goes(root: Path) -> None:
    with Workspace(root, keep=True) as workspace:
        volume = make_loop_volume(VolumeSpec(16 * MIB), workspace.path / "disk.img", workspace.path / "disk")
        child = ChildProcess(
            ["sleep", "300"], log_path=workspace.path / "log", environment=workspace.environment()
        )

    assert remains_of(workspace.path) == [f"directory {workspace.path}"]
    assert not child.running()
    assert volume.image.exists()
    with Workspace(root):
        assert volume.image.exists()


def test_a_process_that_is_not_a_member_survives(root: Path) -> None:
    with subprocess.Popen(["sleep", "300"]) as stranger:
        with Workspace(root):
            pass
        assert stranger.poll() is None
        stranger.kill()


def test_a_volume_that_a_container_holds_in_its_own_namespace_is_no_failure(
    root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo ready; exec sleep 300"]
    with Workspace(root) as workspace:
        volume = make_loop_volume(VolumeSpec(16 * MIB), workspace.path / "disk.img", workspace.path / "disk")
        device = volume.device
        container = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert container.stdout is not None
        assert container.stdout.readline() == b"ready\n"
    try:
        assert not workspace.path.exists()
        assert remains_of(workspace.path) == []
        assert capfd.readouterr().err.startswith(f"note: {device}: detached")
    finally:
        container.kill()
        container.wait()
        container.stdout.close()
    wait_until_nothing_remains(workspace.path)
