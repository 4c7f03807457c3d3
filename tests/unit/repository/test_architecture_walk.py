"""The architecture's walk from the disk to a producer names files and functions that exist."""

from __future__ import annotations

import re

from tests.unit.repository.tree import REPOSITORY

_ROW = re.compile(r"^\| (\d+) \| .* \| `([\w/.]+\.(?:py|java))` \| `(\w+)` \|$", re.MULTILINE)


def test_each_step_names_a_function_of_its_file_and_there_are_ten_at_most() -> None:
    page = (REPOSITORY / "docs/architecture.md").read_text("utf-8")
    steps = _ROW.findall(page)
    assert [int(number) for number, _, _ in steps] == list(range(1, len(steps) + 1))
    assert 5 <= len(steps) <= 10
    for _, file, function in steps:
        source = (REPOSITORY / file).read_text("utf-8")
        definition = (
            rf"def {function}\(" if file.endswith(".py") else rf"(?:public|static) [\w<>]+ {function}\("
        )
        assert re.search(definition, source), f"{file} has no {function}"
