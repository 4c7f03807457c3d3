"""A directory on a disk that forgets in a power cut what was not synced."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


class ForgetfulDisk:
    """The mounted file system."""

    def __init__(self, mount_point: Path) -> None:
        self.path = mount_point
        mount_point.mkdir()
        self._server = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("forgetful_filesystem.py"), mount_point],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._await(b"ready\n")

    def cut_power(self, seed: object = "-") -> None:
        """Forget; what else stays depends on the seed, and is nothing by default."""
        assert self._server.stdin is not None
        self._server.stdin.write(f"cut {seed}\n".encode())
        self._server.stdin.flush()
        self._await(b"cut\n")

    def take_down(self) -> None:
        """Unmount it, with all files."""
        self._server.kill()
        self._server.communicate()
        subprocess.run(["umount", "--lazy", str(self.path)], check=True)

    def _await(self, line: bytes) -> None:
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == line
