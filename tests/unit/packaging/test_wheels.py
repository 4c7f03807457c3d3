"""The wheels that hosts install: chosen from the lock by their Python, named by digest."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tools.wheels import LOCK, for_python, gather_agent, named_with_digests


@pytest.mark.parametrize("version", ["3.11", "3.13"])
def test_of_what_is_locked_for_several_pythons_a_host_gets_its_own(version: str) -> None:
    locked = list(for_python(LOCK.read_text("utf-8"), version))
    names = [name for name, _ in locked]
    assert len(names) == len(set(names)), "one version of each"
    assert {"pyspark", "pyarrow", "pandas", "numpy"} <= set(names)
    assert "colorama" not in names, "for Windows alone"
    assert all("--hash=sha256:" in line and ";" not in line and "\\" not in line for _, line in locked)


def test_another_python_gets_another_numpy() -> None:
    lock = LOCK.read_text("utf-8")
    numpy = {version: dict(for_python(lock, version))["numpy"].split()[0] for version in ("3.11", "3.13")}
    assert numpy["3.11"] != numpy["3.13"]


def test_a_wheel_is_named_by_its_content(tmp_path: Path) -> None:
    wheel = tmp_path / "some_thing-1.2-py3-none-any.whl"
    wheel.write_bytes(b"content")
    digest = hashlib.sha256(b"content").hexdigest()
    assert named_with_digests([wheel]) == f"some-thing==1.2 --hash=sha256:{digest}\n"


def test_a_python_that_nothing_here_compiles_for_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"Python 3\.99"):
        gather_agent("3.99", tmp_path / "wheels")
    assert list(tmp_path.iterdir()) == []
