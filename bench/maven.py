"""Maven's products for the bench: its own programs, and the peer plug-in's jars, once."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from testbed.loopback.locked_jars import difference_from_lock
from testbed.loopback.runtime import MAVEN, RuntimeUnavailable, cache_directory

PEER = "kafka-quotas-plugin 0.3.1"
_PEER_POM = Path(__file__).with_name("peer-pom.xml")


def ensure_peer_jars() -> tuple[Path, ...]:
    """The jars for the broker's class path, fetched into the cache at the first call.

    Raises:
        RuntimeUnavailable: Maven is missing, or failed, or a jar is not that of the lock.
    """
    jars = cache_directory() / f"bench-peer-{hashlib.sha256(_PEER_POM.read_bytes()).hexdigest()[:12]}"
    if not jars.is_dir():
        cache_directory().mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="fetching-peer-", dir=cache_directory()) as incoming:
            maven(_PEER_POM, f"-DoutputDirectory={incoming}/jars")
            Path(incoming, "jars").rename(jars)
    if difference := difference_from_lock(jars):
        raise RuntimeUnavailable(difference)
    return tuple(sorted(jars.glob("*.jar")))


def maven(pom: Path, *arguments: str) -> None:
    """Copy a project's dependencies, after other goals that are given.

    Raises:
        RuntimeUnavailable: Maven is missing, or failed; with the end of its output.
    """
    command = [str(MAVEN), "-q", "-B", "-ntp", "-f", str(pom), *arguments]
    run(
        [
            *command,
            "org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies",
            "-DincludeScope=runtime",
        ]
    )


def run(command: list[str]) -> str:
    """Run a command; returns its output.

    Raises:
        RuntimeUnavailable: it failed; with the end of its output.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeUnavailable(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return done.stdout
