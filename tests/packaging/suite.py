"""A Debian host to install packages on: a root directory of the suite with what the packages depend on."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kquota import __version__

REPOSITORY = Path(__file__).resolve().parents[2]
DIST = REPOSITORY / "dist"
RPM = ("rpm", "--dbpath=/var/lib/rpm", "--force-debian")
"""As on EL, and not as on Debian, where alien is to be used."""


@dataclass(frozen=True, slots=True)
class Host:
    """An unpacked Debian. Its services don't run, its packages are real."""

    root: Path

    def run(self, *command: str | Path, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Run a command on the host; ``code`` is the exit code that it must have, None for any."""
        result = subprocess.run(
            [
                "unshare",
                "--mount",
                "--pid",
                "--fork",
                f"--mount-proc={self.root}/proc",
                "chroot",
                self.root,
                "/usr/bin/env",
                "-i",
                "PATH=/usr/sbin:/usr/bin",
                "LC_ALL=C.UTF-8",
                *command,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert code in (None, result.returncode), (
            f"{command}: {result.returncode}\n{result.stdout}{result.stderr}"
        )
        return result

    def path(self, absolute: str) -> Path:
        """Return where a path of the host is seen from here."""
        return self.root / absolute.lstrip("/")

    def write(self, absolute: str, text: str) -> None:
        """Write a file of the host."""
        file = self.path(absolute)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def dpkg(self, *arguments: str | Path, code: int = 0) -> str:
        """Run dpkg; files among the arguments are copied to the host. Returns its output."""
        local = []
        for argument in arguments:
            if isinstance(argument, Path):
                shutil.copy(argument, self.path("/tmp"))
                local.append(f"/tmp/{argument.name}")
            else:
                local.append(argument)
        result = self.run("dpkg", *local, code=code)
        return result.stdout + result.stderr

    def rpm(self, *arguments: str | Path, code: int = 0) -> str:
        """Run the rpm of this machine for the host; its scripts run there. Returns its output."""
        proc = f"--mount-proc={self.root}/proc"
        result = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", proc, *RPM, f"--root={self.root}", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        )
        assert result.returncode == code, result.stdout
        return result.stdout

    def status(self, package: str) -> str:
        """Return dpkg's status of a package: i is installed, c removed with configuration left."""
        return self.run("dpkg-query", "-f", "${db:Status-Abbrev}", "-W", package, code=None).stdout.strip()[
            1:
        ]


def next_version(package: Path, folder: Path, suffix: str = ".1") -> Path:
    """Return the same package with a higher version; a file name with the version in it follows."""
    tree = folder / "tree"
    subprocess.run(["dpkg-deb", "-R", package, tree], check=True)
    version = f"{__version__}{suffix}"
    control = tree / "DEBIAN/control"
    control.write_text(
        control.read_text("utf-8").replace(f"Version: {__version__}", f"Version: {version}"), "utf-8"
    )
    java = tree / "usr/share/java"
    if java.is_dir():
        (java / f"kquota-callback-{__version__}.jar").rename(java / f"kquota-callback-{version}.jar")
        (java / "kquota-callback.jar").unlink()
        (java / "kquota-callback.jar").symlink_to(f"kquota-callback-{version}.jar")
    result = folder / package.name.replace(__version__, version)
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, result], check=True, capture_output=True
    )
    shutil.rmtree(tree)
    return result
