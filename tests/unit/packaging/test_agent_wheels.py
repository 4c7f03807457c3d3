"""The wheels that hosts install."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.agent_wheels import gather


def test_a_python_that_nothing_here_compiles_for_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"Python 3\.99"):
        gather("3.99", tmp_path / "wheels")
    assert list(tmp_path.iterdir()) == []
