"""The lock of all that Maven resolves, and the jars that are compared with it again before they are used."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest

from testbed.loopback.locked_jars import LOCK, difference_from_lock
from tests.unit.repository.tree import REPOSITORY, shown, source_files

LINES = LOCK.read_text("utf-8").splitlines()
DIGITS = 64
DIGESTS = {line[DIGITS + 2 :]: line[:DIGITS] for line in LINES}
JARS = REPOSITORY / "spark/kquota_pipeline/jars/jars.sha256"
# Only these start Maven itself: the program with the lock, and the pipeline, which users have without it.
STARTS_MAVEN = {"tools/maven/mvn", "spark/kquota_pipeline/jars/__init__.py"}


def test_each_file_that_maven_resolves_has_its_version_and_hash() -> None:
    line_form = re.compile(r"[0-9a-f]{64}  [\w+.-]+(/[\w+.-]+)+/[\w+.-]+\.(jar|pom|tar\.gz)")
    assert [line for line in LINES if not line_form.fullmatch(line)] == []
    assert list(DIGESTS) == sorted(DIGESTS)
    assert len(DIGESTS) == len(LINES)


@pytest.mark.parametrize("pom", source_files("pom.xml", "peer-pom.xml"), ids=shown)
def test_what_a_build_names_with_its_version_is_locked(pom: Path) -> None:
    named = re.findall(
        r"<groupId>([\w.]+)</groupId>\s*<artifactId>([\w.-]+)</artifactId>\s*<version>([\w.-]+)</version>",
        pom.read_text("utf-8"),
    )
    files = {
        f"{group.replace('.', '/')}/{name}/{version}/{name}-{version}.pom"
        for group, name, version in named
        if group != "org.kquota"
    }
    assert files
    assert files - set(DIGESTS) == set()


def test_the_pipeline_s_jars_are_those_of_the_lock() -> None:
    of_pipeline = {tuple(line.split()) for line in JARS.read_text("utf-8").splitlines()}
    locked = {(digest, path.rpartition("/")[2]) for path, digest in DIGESTS.items()}
    assert of_pipeline
    assert of_pipeline <= locked


def test_maven_runs_nowhere_without_its_lock() -> None:
    starts = re.compile(r"""^\s*mvn |"mvn"|:= mvn|\$\(mvn|; mvn|&& mvn""", re.MULTILINE)
    found = {
        shown(path)
        for path in source_files("*.py", "*.sh", "*.mk", "Makefile", "mvn")
        if path != Path(__file__) and starts.search(path.read_text("utf-8").replace('which("mvn")', "", 1))
    }
    assert found <= STARTS_MAVEN


def test_a_wrong_byte_in_a_kept_jar_is_found_with_both_checksums(tmp_path: Path) -> None:
    jars, lock = tmp_path / "jars", tmp_path / "lock"
    jars.mkdir()
    (jars / "a-1.jar").write_bytes(b"right")
    wanted, found = sha256(b"right").hexdigest(), sha256(b"wrong").hexdigest()
    lock.write_text(f"{wanted}  org/example/a/1/a-1.jar\n", "utf-8")
    assert difference_from_lock(jars, lock) is None

    (jars / "a-1.jar").write_bytes(b"wrong")
    difference = difference_from_lock(jars, lock)
    assert difference is not None
    assert re.search(
        rf"a-1\.jar is not the file that was locked: .* wants the SHA-256 {wanted}, .* {found}", difference
    )


def test_a_jar_that_was_never_locked_is_found(tmp_path: Path) -> None:
    (tmp_path / "a-1.jar").write_bytes(b"")
    assert "is not in" in (difference_from_lock(tmp_path) or "")
