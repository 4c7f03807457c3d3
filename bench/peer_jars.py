"""The peer plug-in's jars: resolved by Maven from `peer-pom.xml` into the cache, once."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from testbed.loopback.runtime import RuntimeUnavailable, cache_directory

PEER = "kafka-quotas-plugin 0.3.1"
_POM = Path(__file__).with_name("peer-pom.xml")
_JAR = "kafka-quotas-plugin-0.3.1.jar"


def ensure_peer_jars() -> tuple[Path, ...]:
    """The jars for the broker's class path, fetched at the first call.

    Raises:
        RuntimeUnavailable: Maven is missing, or could not resolve them; with the end of its output.
    """
    jars = cache_directory() / f"bench-peer-{hashlib.sha256(_POM.read_bytes()).hexdigest()[:12]}"
    if not jars.is_dir():
        cache_directory().mkdir(parents=True, exist_ok=True)
        incoming = Path(tempfile.mkdtemp(prefix="fetching-peer-", dir=cache_directory()))
        try:
            _fetch(incoming)
            incoming.chmod(0o755)
            incoming.rename(jars)
        finally:
            shutil.rmtree(incoming, ignore_errors=True)
    return tuple(sorted(jars.glob("*.jar")))


def _fetch(target: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise RuntimeUnavailable(f"Maven (mvn) is needed to fetch {PEER}: apt-get install maven")
    command = [maven, "--batch-mode", "--quiet", "--file", str(_POM)]
    command += ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={target}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not (target / _JAR).is_file():
        raise RuntimeUnavailable(f"Maven could not fetch {PEER}:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
