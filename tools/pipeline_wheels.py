"""The wheels that the role kquota_pipeline installs: `python -m tools.pipeline_wheels PYTHON_VERSION FOLDER`.

FOLDER/pipeline-wheels gets the locked wheels for that Python, those of kquota and kquota-pipeline among
them, and `wheels.txt`, which names each with its digest: hosts install exactly these, with neither a network
nor a compiler.
FOLDER/pipeline-jars gets the jars that Spark does not contain.
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


def gather(version: str, folder: Path) -> None:
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
        download: list[str | Path] = [REPOSITORY / "tools/packages/download.sh", version, wheels, ready]
        subprocess.run(download, check=True, env={**os.environ, "PYTHON": sys.executable})
        build: list[str | Path] = ["--no-deps", "--no-build-isolation", "--wheel-dir", wheels]
        _wheel(*build, "--require-hashes", "--requirement", source)
        _wheel(*build, REPOSITORY, REPOSITORY / "spark")
    (wheels / "wheels.txt").write_text(named_with_digests(wheels.glob("*.whl")), "utf-8")
    program = Path(sys.executable).with_name("kquota-pipeline")
    subprocess.run([program, "jars", "--to", jars], check=True, stdout=subprocess.DEVNULL)


def _wheel(*arguments: str | Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    subprocess.run([*pip, *arguments], check=True)


if __name__ == "__main__":
    gather(sys.argv[1], Path(sys.argv[2]))
