"""The core stays pure: its allowed imports are listed, and it calls nothing that reads the world."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import kquota.core

SOURCES = sorted(Path(kquota.core.__path__[0]).glob("**/*.py"))
MAY_IMPORT = {
    "__future__",
    "collections",
    "collections.abc",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "heapq",
    "itertools",
    "json",
    "math",
    "re",
    "typing",
}
READS_THE_WORLD = {
    "open", "input", "print", "exec", "eval", "__import__", "breakpoint", "globals", "id", "hash",
    "now", "utcnow", "today", "fromtimestamp",
}  # fmt: skip


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""


def called(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id
            elif isinstance(node.func, ast.Attribute):
                yield node.func.attr


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_module_of_the_core_imports_nothing_but_values(source: Path) -> None:
    tree = ast.parse(source.read_text("utf-8"))
    foreign = {name for name in imported(tree) if not name.startswith("kquota.core")}
    assert foreign <= MAY_IMPORT


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_module_of_the_core_reads_no_clock_and_no_file(source: Path) -> None:
    tree = ast.parse(source.read_text("utf-8"))
    assert set(called(tree)) & READS_THE_WORLD == set()
    assert not any(isinstance(node, ast.Global) for node in ast.walk(tree)), "no state of a module"
    assert not any(isinstance(node, ast.AsyncFunctionDef) for node in ast.walk(tree))


@pytest.mark.parametrize(
    "code", ["import os", "from time import monotonic", "import kquota.settings", "from pathlib import Path"]
)
def test_the_check_sees_an_import(code: str) -> None:
    (name,) = imported(ast.parse(code))
    assert name not in MAY_IMPORT
    assert not name.startswith("kquota.core")
