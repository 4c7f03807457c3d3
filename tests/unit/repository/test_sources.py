"""Properties of every source file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.repository.tree import REPOSITORY, shown, source_files

CODE = ("*.py", "*.java", "*.sh")
# Written so that this file does not contain them itself.
FORBIDDEN = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX|HA" + r"CK)\b")
# A way around a test that does not hold: a test is repaired or removed, never kept and left out.
SKIPS = re.compile(r"\bpytest\.(skip|importorskip|xfail|mark\.(skip|skipif|xfail))\b|@Disabled\b")
ADDRESS = re.compile(
    r"https?://|--(extra-)?index-url|--find-links|--trusted-host|\bgit\+|\bfile:", re.IGNORECASE
)
DOWNLOAD_PLACE = re.compile(
    r"<(repositories|pluginRepositories|distributionManagement)>|index-url|find-links|\[\[?tool\.uv\.index"
)


def names(paths: list[Path]) -> list[str]:
    return [shown(path) for path in paths]


def lines_with(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    return [
        f"{shown(path)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]


def test_nothing_is_left_to_be_done_in_a_comment():
    assert lines_with(FORBIDDEN, source_files(*CODE, "*.md", "*.yml", "*.yaml", "*.toml", "Makefile")) == []


def test_no_test_is_left_out():
    tests = [path for path in source_files("*.py", "*.java") if "test" in shown(path).lower()]
    assert lines_with(SKIPS, [path for path in tests if path != Path(__file__)]) == []


def locks() -> list[Path]:
    return [path for path in source_files("*.txt") if path.parent == REPOSITORY / "requirements"]


def test_lock_files_name_no_address():
    assert lines_with(ADDRESS, locks()) == []


def test_no_build_names_a_repository_to_download_from():
    assert lines_with(DOWNLOAD_PLACE, source_files("pom.xml", "pip.conf", "*.toml", "settings.xml")) == []


@pytest.mark.parametrize("lock", locks(), ids=shown)
def test_each_locked_requirement_has_its_version_and_hashes(lock):
    entries = re.sub(r"\\\n", " ", lock.read_text("utf-8"))
    requirements = [line for line in entries.splitlines() if line.strip() and not line.startswith("#")]
    assert requirements
    assert [
        line for line in requirements if not re.match(r"[A-Za-z0-9._\[\]-]+==\S+ .*--hash=sha256:", line)
    ] == []
