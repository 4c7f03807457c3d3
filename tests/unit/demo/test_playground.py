"""The directory through which a playground is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from kquota.core.decision import Scope
from testbed.demo.playground import MARKER, DirectoryTaken, playground_plan, require_own_directory


def test_it_takes_no_directory_that_somebody_else_has_filled(tmp_path: Path) -> None:
    require_own_directory(tmp_path / "new")
    require_own_directory(tmp_path)
    (tmp_path / "thesis.tex").write_text("years of work", "utf-8")
    with pytest.raises(DirectoryTaken, match="is no playground's"):
        require_own_directory(tmp_path)
    with pytest.raises(DirectoryTaken):
        require_own_directory(tmp_path / "thesis.tex")
    (tmp_path / MARKER).write_text("", "utf-8")
    require_own_directory(tmp_path)  # the remains of a playground that was killed


def test_the_smallest_disk_is_the_follower_s() -> None:
    sizes = {broker: volumes[0].size_bytes for broker, volumes in playground_plan().volumes.items()}
    assert min(sizes, key=lambda broker: sizes[broker]) == 3


def test_it_holds_all_producers_as_the_default_does() -> None:
    assert playground_plan().scope is Scope.CLUSTER
