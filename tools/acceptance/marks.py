"""Finds the marks of all tests: ``@pytest.mark.accepts("A9")`` in Python, ``@Tag("A9")`` in Java.

It reads the sources, because the tests belong to three environments and to Maven, and none has all. A mark
that it does not understand is a problem, so that none is missed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

_PYTHON_ROOTS = ("tests", "extensions")
_JAVA_ROOT = "callback/src/test/java"
_STATEMENT_TAG = re.compile(r'@Tag\("([A-Z]+[0-9]+)"\)')
_JAVA_TEST = re.compile(r"@(Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate)\b")
_UNCLEAR = re.compile(r'@Tag\b(?!\("[a-z][a-z-]*"\)$)|.@Tag\b|@\w*Test\b.*\bvoid\b')
_JAVA_TYPE = re.compile(r"\b(?:class|record|enum|interface) (\w+)")
_JAVA_INDENT = 4


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """``path`` is relative to the repository, ``test`` the name with its classes, ``line`` the mark's."""

    path: str
    test: str
    statement_id: str
    line: int


def collect_marks(repository: Path, known_ids: Collection[str]) -> tuple[list[Mark], list[str]]:
    """Return the marks, and the places of those that prove no known statement."""
    marks: list[Mark] = []
    problems: list[str] = []
    for pattern, roots, read in (
        ("*.py", _PYTHON_ROOTS, python_marks),
        ("*.java", (_JAVA_ROOT,), java_marks),
    ):
        for path in sorted(path for root in roots for path in (repository / root).rglob(pattern)):
            found, bad = read(path.relative_to(repository).as_posix(), path.read_text("utf-8"))
            marks += found
            problems += bad
    problems += [
        f"{mark.path}:{mark.line}: {mark.statement_id} is no statement of docs/acceptance.yml"
        for mark in marks
        if mark.statement_id not in known_ids
    ]
    return marks, problems


def python_marks(path: str, source: str) -> tuple[list[Mark], list[str]]:
    """Return those of a file: on a test or its parameters, or on the module for each of its tests."""
    marks: list[Mark] = []
    tree = ast.parse(source, path)
    of_module = [call for node in tree.body if _is_pytestmark(node) for call in _accepts(node)]
    of_tests: set[ast.Call] = set()
    for node in tree.body if path.rpartition("/")[2].startswith("test_") else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            decorators = (call for decorator in node.decorator_list for call in _accepts(decorator))
            calls = [*of_module, *decorators]
            of_tests.update(calls)
            marks += [Mark(path, node.name, id_, call.lineno) for call in calls for id_ in _ids(call)]
    calls = sorted(_accepts(tree), key=lambda call: call.lineno)
    lost = [
        f"{path}:{call.lineno}: the mark stands on no test function of its module"
        for call in calls
        if call not in of_tests
    ]
    empty = [
        f"{path}:{call.lineno}: the mark must name its statements as literal texts"
        for call in calls
        if not _ids(call)
    ]
    return marks, lost + empty


def _accepts(node: ast.AST) -> Iterator[ast.Call]:
    for child in ast.walk(node):
        if isinstance(child, ast.Call) and ast.unparse(child.func) in ("pytest.mark.accepts", "mark.accepts"):
            yield child


def _is_pytestmark(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"


def _ids(call: ast.Call) -> list[str]:
    """The statements that a mark names; none if one of them is no literal text."""
    ids = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return ids if len(ids) == len(call.args) and not call.keywords else []


def java_marks(path: str, source: str) -> tuple[list[Mark], list[str]]:
    """Return those of a file, by lines and indentation: on a test of its class, or on that for each test."""
    marks: list[Mark] = []
    problems: list[str] = []
    name, of_class, tags, is_test = "", list[tuple[str, int]](), list[tuple[str, int]](), False
    for number, line in enumerate(source.splitlines(), start=1):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if (statement := _STATEMENT_TAG.fullmatch(text)) and indent <= _JAVA_INDENT:
            tags.append((statement[1], number))
        elif statement or _UNCLEAR.search(text):
            problems.append(f"{path}:{number}: a tag stands alone in its line, and so does @Test")
        if not text or indent > _JAVA_INDENT or text.startswith(("//", "/*", "*", ")", "}")):
            continue
        is_test = is_test or _JAVA_TEST.match(text) is not None
        if text.startswith("@"):
            continue
        if not indent and (declared := _JAVA_TYPE.search(text)):
            name, of_class = declared[1], tags
        elif is_test and (method := re.search(r"(\w+)\(", text)):
            marks += [Mark(path, f"{name}::{method[1]}", id_, line) for id_, line in of_class + tags]
        else:
            problems += _misplaced(path, tags)
        tags, is_test = [], False
    return marks, problems + _misplaced(path, tags if marks else of_class + tags)


def _misplaced(path: str, tags: list[tuple[str, int]]) -> list[str]:
    return [f"{path}:{line}: the tag stands on something that is no test" for _, line in tags]
