"""The golden files of sentences: tests use each of them, with all of its values."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.wording import say, sentences

TESTS = Path(__file__).parents[2]
# Tests of enumerations make these names from each cause.
OF_CAUSES = ("unknown-", "refused-", "ends-")


def test_a_test_asserts_each_sentence() -> None:
    sources = "".join(path.read_text("utf-8") for path in TESTS.rglob("test_*.py"))
    assert [
        name
        for name in sentences()
        if not name.startswith(OF_CAUSES) and not any(f"{quote}{name}{quote}" in sources for quote in "'\"")
    ] == []


def test_a_sentence_takes_its_values_and_no_others() -> None:
    assert say("over-hard", volume="/dev/sda1", broker=2).split()[1:5] == ["/dev/sda1", "of", "broker", "2"]
    for values in ({"volume": "/dev/sda1"}, {"volume": "/dev/sda1", "broker": 2, "percent": 1}):
        with pytest.raises(AssertionError):
            say("over-hard", **values)
