"""Policy and formats call nothing that reads the world; what they may import is in .importlinter."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import kquota

ROOMS = (Path(kquota.__path__[0]) / room for room in ("policy", "formats"))
SOURCES = sorted(source for room in ROOMS for source in room.glob("*.py"))
READS_THE_WORLD = {
    "open", "input", "print", "exec", "eval", "__import__", "breakpoint", "globals", "id", "hash",
    "now", "utcnow", "today", "fromtimestamp",
}  # fmt: skip


def called(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id
            elif isinstance(node.func, ast.Attribute):
                yield node.func.attr


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_pure_module_reads_no_clock_and_no_file(source: Path) -> None:
    tree = ast.parse(source.read_text("utf-8"))
    assert set(called(tree)) & READS_THE_WORLD == set()
    assert not any(isinstance(node, ast.Global) for node in ast.walk(tree)), "no state of a module"
    assert not any(isinstance(node, ast.AsyncFunctionDef) for node in ast.walk(tree))
