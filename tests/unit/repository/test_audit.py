"""The audit of the dependencies finds what it is there for."""

from __future__ import annotations

from importlib.metadata import Distribution, PathDistribution
from pathlib import Path

import pytest

from tools.audit import altered_files, compare, licence_of, read_lock

LOCK = """\
# a comment
alpha==1.0 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
beta.two==2.1 ; python_version < "3.12" \\
    --hash=sha256:cc
"""


def test_a_lock_has_versions_and_hashes() -> None:
    found, problems = read_lock(LOCK)
    assert found == [("alpha", "1.0"), ("beta-two", "2.1")]
    assert problems == []


@pytest.mark.parametrize(
    "line",
    ["alpha==1.0", "alpha>=1 \\\n    --hash=sha256:aa", "alpha @ https://x/a.whl", "--index-url https://x"],
)
def test_a_line_that_anything_could_be_installed_by_is_a_problem(line: str) -> None:
    assert read_lock(line)[1]


@pytest.fixture
def package(tmp_path: Path) -> Distribution:
    info = tmp_path / "alpha-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: alpha\nVersion: 1.0\nClassifier: License :: DFSG approved\n"
        "Classifier: License :: OSI Approved :: MIT License\n"
    )
    (tmp_path / "alpha.py").write_text("x = 1\n")
    # printf 'x = 1\n' | openssl dgst -sha256 -binary | basenc --base64url
    (info / "RECORD").write_text("alpha.py,sha256=nia_NpkRxFwkPGhBR7I_yeHc_PJX0pmhxjIBam_NM_Q,6\n")
    return PathDistribution(info)


def test_what_is_installed_is_compared_with_what_is_locked(package: Distribution) -> None:
    assert list(compare([package], {"alpha": {"1.0"}})) == []
    assert list(compare([package], {"alpha": {"1.1"}})) == ["alpha 1.0 is installed, 1.1 is locked"]
    assert list(compare([package], {})) == ["alpha 1.0 is installed and not locked"]
    assert licence_of(package) == "MIT License"


def test_a_file_that_was_altered_or_removed_is_found(package: Distribution, tmp_path: Path) -> None:
    assert list(altered_files(package)) == []
    (tmp_path / "alpha.py").write_text("x = 2\n")
    assert list(altered_files(package)) == ["alpha.py was altered"]
    (tmp_path / "alpha.py").unlink()
    assert list(altered_files(package)) == ["alpha.py is missing"]
