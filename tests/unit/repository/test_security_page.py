"""SECURITY.md names tests that are there."""

from __future__ import annotations

import re

from tests.unit.repository.tree import REPOSITORY


def test_every_test_that_stands_for_a_threat_exists() -> None:
    page = (REPOSITORY / "SECURITY.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|")][2:]
    sources = [
        path.read_text("utf-8")
        for root, pattern in (
            ("tests", "test_*.py"),
            ("extensions", "test_*.py"),
            ("callback/src/test", "*.java"),
        )
        for path in (REPOSITORY / root).rglob(pattern)
    ]
    text = "\n".join(sources)
    for row in rows:
        named = re.findall(r"`(\w+)`", row.split("|")[3])
        assert named, f"no test stands for: {row}"
        for name in named:
            assert re.search(rf"\b(def|void) {name}\(", text), f"{name} is no test"
