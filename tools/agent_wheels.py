"""The wheels that the role kquota_agent installs: `python -m tools.agent_wheels PYTHON_VERSION FOLDER`.

FOLDER gets the locked wheels for that Python, kquota's own among them, and `wheels.txt`, which names each
with its digest: hosts install exactly these, with neither a network nor a compiler.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.pipeline_wheels import named_with_digests

REPOSITORY = Path(__file__).resolve().parents[1]
_TOOLS = REPOSITORY / "tools/packages"
_SUITES = {"3.11": "bookworm", "3.13": "trixie"}
"""Whose own Python it is: what is there only as a source is compiled in there, as for the packages."""


def gather(version: str, folder: Path) -> None:
    """Make the folder again.

    Raises:
        SystemExit: nothing here can compile for that Python.
        subprocess.CalledProcessError: a step failed; it has printed the reason.
    """
    suite, python = _SUITES.get(version), shutil.which(f"python{version}")
    if suite is None and python is None:
        raise SystemExit(
            f"systemd-python is compiled for Python {version}: that and its headers are needed here"
        )
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for lock in ("build", "agent"):
            source = f"requirements/{lock}.txt", "--no-binary=systemd-python"
            _run(_TOOLS / "download.sh", version, work / lock, *source)
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet")
        _run(*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", work / "agent", REPOSITORY)
        # To where the suite sees it.
        build = Path(shutil.copy(_TOOLS / "build-wheels.sh", work))
        wheels = work / "wheels"
        if suite is not None:
            _run(_TOOLS / "in-suite.sh", suite, work, build, work, wheels)
        else:
            _run(build, work, wheels, str(python))
        (wheels / "wheels.txt").write_text(named_with_digests(wheels.glob("*.whl")), "utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(wheels, folder)


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, cwd=REPOSITORY)


if __name__ == "__main__":
    gather(sys.argv[1], Path(sys.argv[2]).absolute())
