"""An operator's control host: a folder with a release's files, and Ansible, but without this repository."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from testbed.hosts.rollout import ANSIBLE


@dataclass(frozen=True)
class ControlHost:
    """The operator's home; Ansible reads neither the configuration nor the roles of this repository."""

    home: Path

    @property
    def collection(self) -> Path:
        """Where `install` puts the collection."""
        return self.home / ".ansible/collections/ansible_collections/kquota/kquota"

    def install(self, collection: Path) -> None:
        """Install the tarball as documented."""
        done = self.run("ansible-galaxy", "collection", "install", "--offline", str(collection))
        assert done.returncode == 0, done.stdout + done.stderr

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program of Ansible in the home."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        environment |= {"HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        return subprocess.run(
            [ANSIBLE / program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.home,
            env=environment,
        )
