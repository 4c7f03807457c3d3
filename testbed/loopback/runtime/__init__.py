"""Apache Kafka as plain jars: resolved by Maven from `pom.xml` into a cache, once.

Layout of the cache: `<cache>/kquota/kafka-<version>/<digest of pom.xml>/*.jar`. A directory appears there by
one rename, when it is complete; it is never changed afterwards, because a running JVM opens its jars late.
There may also be an archive of its classes there.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed.loopback.locked_jars import difference_from_lock

DEFAULT_KAFKA_VERSION = "4.4.0"

MAVEN = Path(__file__).parents[3] / "tools/maven/mvn"
"""Maven, which compares what it resolves with the repository's lock."""

_POM = Path(__file__).with_name("pom.xml")
_TRANSFERRED = re.compile(r"Downloaded from \S+: \S*/(?P<name>[^/\s]+\.jar) \((?P<size>[^)]*)\)")
_MAVEN_LINES_IN_ERROR = 15


class RuntimeUnavailable(Exception):
    """Kafka's jars, Java or Maven are missing; the message has the remedy."""


@dataclass(frozen=True)
class KafkaRuntime:
    """The jars of one Kafka version, and the Java that runs them."""

    version: str
    jars: Path
    java: str

    def class_path(self, *extra: Path) -> str:
        """`java -cp` argument: `extra` last, since an archive of classes holds for the first jars only."""
        return os.pathsep.join([f"{self.jars}/*", *(str(path) for path in extra)])

    @property
    def archive(self) -> Path:
        """Where the archive of these jars' classes for this JVM is, if there is one: see `class_archive`."""
        java = Path(self.java).resolve()
        built = hashlib.sha256(f"{java} {java.stat().st_mtime_ns}".encode()).hexdigest()[:8]
        return self.jars.with_name(f"{self.jars.name}-{built}.jsa")

    @property
    def _line(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.version.split(".")[:2])

    @property
    def has_plug_in_metrics(self) -> bool:
        """Whether this Kafka has a place for metrics of plug-ins."""
        return self._line >= (4, 1)

    @property
    def config_command(self) -> str:
        """The class behind kafka-configs.sh."""
        return "kafka.admin.ConfigCommand" if self._line < (4, 4) else "org.apache.kafka.tools.ConfigCommand"

    @property
    def logging_configuration(self) -> Path:
        """The log4j2 configuration every node starts with."""
        return Path(__file__).with_name("log4j2.properties")


def cache_directory() -> Path:
    """`$XDG_CACHE_HOME/kquota`, by default `~/.cache/kquota`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kquota"


def ensure_kafka_runtime(
    version: str = DEFAULT_KAFKA_VERSION, *, report: Callable[[str], None] = lambda _line: None
) -> KafkaRuntime:
    """Return the runtime of that Kafka version, fetching its jars at the first call.

    Concurrent callers wait for each other. An interrupted fetch leaves nothing that a later call would take
    for complete, and what Maven has already stored in its own repository is not fetched again.

    Raises:
        RuntimeUnavailable: no Java, no Maven, Maven could not resolve the jars, or one is another than
            the lock has.
    """
    java = _find_java()
    family = cache_directory() / f"kafka-{version}"
    jars = family / hashlib.sha256(_POM.read_bytes()).hexdigest()[:12]
    if not jars.is_dir():
        family.mkdir(parents=True, exist_ok=True)
        with (family / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not jars.is_dir():
                _fetch(version, family, jars, report)
    if difference := difference_from_lock(jars):
        raise RuntimeUnavailable(difference)
    return KafkaRuntime(version=version, jars=jars, java=java)


def _fetch(version: str, family: Path, jars: Path, report: Callable[[str], None]) -> None:
    for abandoned in family.glob("fetching-*"):  # we hold the lock: no other process works there
        shutil.rmtree(abandoned)
    report(f"fetching Apache Kafka {version} with Maven into {jars} (once)")
    incoming = Path(tempfile.mkdtemp(prefix="fetching-", dir=family))
    try:
        _copy_dependencies(version, incoming, report)
        count = sum(1 for _ in incoming.glob("*.jar"))
        if not (incoming / f"kafka_2.13-{version}.jar").is_file():
            raise RuntimeUnavailable(
                f"Maven copied {count} jars for Kafka {version}, but not the broker's own"
            )
        incoming.chmod(0o755)
        incoming.rename(jars)
    finally:
        shutil.rmtree(incoming, ignore_errors=True)
    report(f"Apache Kafka {version}: {count} jars")


def _copy_dependencies(version: str, target: Path, report: Callable[[str], None]) -> None:
    if shutil.which("mvn") is None:
        raise RuntimeUnavailable("Maven (mvn) is needed to fetch Kafka: apt-get install maven")
    command = [str(MAVEN), "--batch-mode", "--file", str(_POM), f"-Dkafka.version={version}"]
    command += [
        "org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies",
        "-DincludeScope=runtime",
        f"-DoutputDirectory={target}",
    ]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line.rstrip())
                if transferred := _TRANSFERRED.search(line):
                    report(f"  {transferred['name']} ({transferred['size']})")
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        tail = "\n".join(lines[-_MAVEN_LINES_IN_ERROR:])
        raise RuntimeUnavailable(
            f"Maven could not fetch Kafka {version} (exit {process.returncode}):\n{tail}"
        )


def _find_java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME={home} has no bin/java" if home else "no java on PATH"
        raise RuntimeUnavailable(
            f"Kafka needs Java 17 or later: {where} (apt-get install default-jre-headless)"
        )
    return java
