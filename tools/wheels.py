"""The wheels that a role installs: `python -m tools.wheels agent|pipeline PYTHON_VERSION FOLDER`.

Of the agent, FOLDER gets the locked wheels for that Python, kquota's own among them. Of the pipeline,
FOLDER/pipeline-wheels gets them, with kquota's and kquota-pipeline's, and FOLDER/pipeline-jars the jars that
Spark does not contain. `wheels.txt` names each wheel with its digest: hosts install exactly these, with
neither a network nor a compiler.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename

REPOSITORY = Path(__file__).resolve().parents[1]
LOCK = REPOSITORY / "requirements/pipeline.txt"
_TOOLS = REPOSITORY / "tools/packages"
_SUITES = {"3.11": "bookworm", "3.13": "trixie"}
"""Whose own Python it is: what is there only as a source is compiled in there, as for the packages."""
# There only as a source distribution, of which nothing is compiled: made a wheel here, it suits every Python.
_FROM_SOURCE = {"pyspark"}


def for_python(lock: str, version: str) -> Iterator[tuple[str, str]]:
    """Yield what a lock holds for hosts with that Python: the names, and their lines without conditions.

    pip itself asks the Python that it runs in, which is not the hosts'.
    """
    hosts = {
        "python_version": version,
        "python_full_version": f"{version}.0",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    for block in re.findall(r"^[^\s#].*(?:\n[ \t].*)*", lock, re.MULTILINE):
        first, *digests = block.replace("\\", "").splitlines()
        requirement = Requirement(first)
        if requirement.marker is None or requirement.marker.evaluate(hosts):
            words = [f"{requirement.name}{requirement.specifier}", *(digest.strip() for digest in digests)]
            yield requirement.name, " ".join(words) + "\n"


def named_with_digests(wheels: Iterable[Path]) -> str:
    """Return requirements that only these files meet."""
    lines = []
    for wheel in sorted(wheels):
        name, version, _build, _tags = parse_wheel_filename(wheel.name)
        with wheel.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        lines.append(f"{name}=={version} --hash=sha256:{digest}\n")
    return "".join(lines)


def gather_agent(version: str, folder: Path) -> None:
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
        _wheel(work / "agent", REPOSITORY)
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


def gather_pipeline(version: str, folder: Path) -> None:
    """Make both folders again.

    Raises:
        subprocess.CalledProcessError: pip or Maven failed; they have printed the reason.
    """
    wheels, jars = folder / "pipeline-wheels", folder / "pipeline-jars"
    for old in (wheels, jars):
        shutil.rmtree(old, ignore_errors=True)
    wheels.mkdir(parents=True)
    locked = list(for_python(LOCK.read_text("utf-8"), version))
    with tempfile.TemporaryDirectory() as work:
        ready, source = Path(work) / "ready.txt", Path(work) / "source.txt"
        ready.write_text("".join(line for name, line in locked if name not in _FROM_SOURCE), "utf-8")
        source.write_text("".join(line for name, line in locked if name in _FROM_SOURCE), "utf-8")
        _run(_TOOLS / "download.sh", version, wheels, ready)
        _wheel(wheels, "--require-hashes", "--requirement", source)
        _wheel(wheels, REPOSITORY, REPOSITORY / "spark")
    (wheels / "wheels.txt").write_text(named_with_digests(wheels.glob("*.whl")), "utf-8")
    program = Path(sys.executable).with_name("kquota-pipeline")
    subprocess.run([program, "jars", "--to", jars], check=True, stdout=subprocess.DEVNULL)


def _wheel(folder: Path, *arguments: str | Path) -> None:
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps")
    _run(*pip, "--no-build-isolation", "--wheel-dir", folder, *arguments)


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, cwd=REPOSITORY, env={**os.environ, "PYTHON": sys.executable})


if __name__ == "__main__":
    gather = {"agent": gather_agent, "pipeline": gather_pipeline}[sys.argv[1]]
    gather(sys.argv[2], Path(sys.argv[3]).absolute())
