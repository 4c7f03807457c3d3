"""A workspace that is cleared away takes nothing with it that is not its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from testbed.loopback.workspace import Workspace, clear_abandoned


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


def test_a_process_that_is_not_a_member_survives(root: Path) -> None:
    with subprocess.Popen(["sleep", "300"]) as stranger:
        with Workspace(root):
            pass
        assert stranger.poll() is None
        stranger.kill()
