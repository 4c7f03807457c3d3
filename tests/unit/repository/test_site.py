"""The patterns by which `make docs` finds a page that loads something from elsewhere."""

from __future__ import annotations

import re

import pytest

from tests.unit.repository.tree import REPOSITORY

PATTERNS = (REPOSITORY / "tools/site/loads-from-elsewhere.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize(
    ("text", "loads"),
    [
        ('<a href="https://x.example">x</a><img src="../x.png"><link href="style.css">', False),
        ('<script async src="https://x.example/a.js"></script>', True),
        ('@import "//x.example"', True),
        ("a { b: url(http://x.example/f.woff) }", True),
        ('<link rel="stylesheet" href="//x.example/a.css">', True),
    ],
)
def test_a_page_that_loads_something_from_elsewhere_is_found(text: str, loads: bool) -> None:
    assert any(re.search(pattern, text, re.IGNORECASE) for pattern in PATTERNS) == loads
