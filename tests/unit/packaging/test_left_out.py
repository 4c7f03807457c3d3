"""The parts of its requirements that the agent's package leaves out."""

from __future__ import annotations

from tests.unit.repository.tree import REPOSITORY


def test_each_line_of_the_list_has_its_reason() -> None:
    text = (REPOSITORY / "packaging/nfpm/agent/left-out.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines
    assert all(len(line.split()) > 1 for line in lines)
