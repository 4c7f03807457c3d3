"""Maven itself, with the lock: it ends before it uses a file that is not the one that was locked."""

from __future__ import annotations

import os
import subprocess
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from testbed.loopback.runtime import MAVEN

# Maven loads an extension's jar itself, when it reads the project: no plug-in runs.
PROJECT = """<project><modelVersion>4.0.0</modelVersion>
<groupId>org.example</groupId><artifactId>project</artifactId><version>1</version><packaging>pom</packaging>
<build><extensions><extension>
<groupId>org.example</groupId><artifactId>part</artifactId><version>2</version>
</extension></extensions></build></project>"""
PART = """<project><modelVersion>4.0.0</modelVersion>
<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></project>"""
PATH = "org/example/part/2/part-2"
# Maven 3.8 adds the second one to each extension.
PARTS = (("org.example", "part", "2"), ("org.codehaus.plexus", "plexus-utils", "1.1"))


def digest(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Maven's store with an artifact, next to its lock and a project that uses it."""
    (tmp_path / "pom.xml").write_text(PROJECT, "utf-8")
    folder = tmp_path / "store"
    lines = []
    for group, name, version in PARTS:
        base = folder / group.replace(".", "/") / name / version / f"{name}-{version}"
        base.parent.mkdir(parents=True)
        pom, jar = Path(f"{base}.pom"), Path(f"{base}.jar")
        pom.write_text(PART.format(group=group, name=name, version=version), "utf-8")
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr("resource.txt", "right")
        lines += [f"{digest(file)}  {file.relative_to(folder)}\n" for file in (pom, jar)]
    (tmp_path / "lock").write_text("".join(lines), "utf-8")
    return folder


def maven(store: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [MAVEN, "-q", "-B", "-o", "-f", store.parent / "pom.xml", f"-Dmaven.repo.local={store}", "validate"],
        env={**os.environ, "KQUOTA_LOCK": str(store.parent / "lock"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_wrong_byte_in_a_jar_ends_maven_with_the_artifact_and_both_checksums(store: Path) -> None:
    done = maven(store)
    assert done.returncode == 0, done.stdout + done.stderr

    jar = store / f"{PATH}.jar"
    wanted, content = digest(jar), bytearray(jar.read_bytes())
    content[len(content) // 2] ^= 1
    jar.write_bytes(content)
    done = maven(store)
    assert done.returncode == 1
    assert "org.example:part:jar:2 is not the file that was locked" in done.stderr
    assert f"wants the SHA-256 {wanted}, but {jar} has {digest(jar)}" in done.stderr


def test_what_was_never_locked_ends_maven_unless_the_lock_is_written(store: Path) -> None:
    lock, found = store.parent / "lock", store.parent / "found"
    before = lock.read_text("utf-8")
    lock.write_text("".join(before.splitlines(keepends=True)[1:]), "utf-8")
    done = maven(store)
    assert done.returncode == 1
    assert "org.example:part:pom:2 is not in" in done.stderr

    assert maven(store, KQUOTA_LOCK_FOUND=str(found)).returncode == 0
    seen = set(found.read_text("utf-8").splitlines())
    assert {line for line in before.splitlines() if PATH in line} <= seen <= set(before.splitlines())
