"""The jars that Spark lacks (Kafka connector, Delta): named in `pom.xml`, resolved by Maven, cached.

`jars.sha256` has the checksum of each; `tools/maven/lock.sh` writes it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

_FOLDER_VARIABLE = "KQUOTA_PIPELINE_JARS"
_MAVEN_LINES_IN_ERROR = 15


class JarsUnavailable(Exception):
    """The jars are missing and could not be fetched; the message has the remedy."""


def ensure_jars(report: Callable[[str], None] = lambda _line: None) -> list[Path]:
    """Return the jars' paths, sorted; the first call fetches them with Maven.

    They are in the folder KQUOTA_PIPELINE_JARS, where that is set (nothing is fetched then), otherwise in
    `$XDG_CACHE_HOME/kquota/spark-jars/<digest of pom.xml>`. That folder appears by one rename when it is
    complete: a process that fetches at the same time does so for nothing, and no reader sees half of it.

    Raises:
        JarsUnavailable: the configured folder lacks them, there is no Maven, it could not resolve them, or
            one is not the file that was locked.
    """
    if configured := os.environ.get(_FOLDER_VARIABLE):
        return _complete(Path(configured), f"{_FOLDER_VARIABLE}={configured}")
    pom = files(__package__).joinpath("pom.xml").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "kquota" / "spark-jars" / hashlib.sha256(pom).hexdigest()[:12]
    if not folder.is_dir():
        report(f"fetching Spark's Kafka connector and Delta with Maven into {folder} (once)")
        fetch_jars(folder)
    return _complete(folder, str(folder))


def fetch_jars(folder: Path) -> None:
    """Fetch the jars into a folder that is not there yet.

    Raises:
        JarsUnavailable: there is no Maven, it could not resolve them, or one is not the file that was locked.
    """
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsUnavailable(
            f"Maven (mvn) is needed to fetch Spark's jars: apt-get install maven, or set {_FOLDER_VARIABLE} "
            "to a folder that holds them"
        )
    folder = folder.resolve()  # Maven takes a relative folder for one next to the pom
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=folder.parent) as work:
        pom, incoming = Path(work) / "pom.xml", Path(work) / "jars"
        pom.write_bytes(files(__package__).joinpath("pom.xml").read_bytes())
        command = [maven, "--batch-mode", "--quiet", "--no-transfer-progress", "--file", str(pom)]
        command += [
            "org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies",
            f"-DoutputDirectory={incoming}",
        ]
        done = subprocess.run(
            command, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if done.returncode != 0:
            tail = "\n".join(done.stdout.splitlines()[-_MAVEN_LINES_IN_ERROR:])
            raise JarsUnavailable(f"Maven could not fetch Spark's jars (exit {done.returncode}):\n{tail}")
        _complete(incoming, "what Maven fetched")
        try:
            incoming.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process was faster, with the same result
                raise


def locked_jars() -> dict[str, str]:
    """Return the SHA-256 of each jar by its name."""
    lines = files(__package__).joinpath("jars.sha256").read_text("utf-8").splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def _complete(folder: Path, name: str) -> list[Path]:
    jars, locked = sorted(folder.glob("*.jar")), locked_jars()
    if len(jars) != len(locked):
        raise JarsUnavailable(
            f"{name}: holds {len(jars)} jars, not the {len(locked)} that `kquota-pipeline jars` fetches"
        )
    for jar in jars:
        with jar.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != locked.get(jar.name):
            raise JarsUnavailable(
                f"{name}: {jar.name} has the SHA-256 {found}, but {locked.get(jar.name, 'no such jar')} was"
                " locked: remove the folder, and fetch it again with `kquota-pipeline jars`"
            )
    return jars
