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
    """Return those of a file: on a test or its parameters, or on its class or module for each test there."""
    marks: list[Mark] = []
    tree = ast.parse(source, path)
    of_tests: set[ast.Call] = set()

    def read(body: list[ast.stmt], names: tuple[str, ...], inherited: list[ast.Call]) -> None:
        here = [*inherited, *(call for node in body if _is_pytestmark(node) for call in _accepts(node))]
        for node in body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                read(node.body, (*names, node.name), [*here, *_of_decorators(node)])
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                calls = [*here, *_of_decorators(node)]
                of_tests.update(calls)
                test = "::".join((*names, node.name))
                marks.extend(Mark(path, test, id_, call.lineno) for call in calls for id_ in _ids(call))

    if path.rpartition("/")[2].startswith("test_"):
        read(tree.body, (), [])
    calls = sorted(_accepts(tree), key=lambda call: call.lineno)
    lost = [
        f"{path}:{call.lineno}: the mark stands where pytest finds no test"
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


def _of_decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[ast.Call]:
    return [call for decorator in node.decorator_list for call in _accepts(decorator)]


def _is_pytestmark(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"


def _ids(call: ast.Call) -> list[str]:
    """The statements that a mark names; none if one of them is no literal text."""
    ids = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return ids if len(ids) == len(call.args) and not call.keywords else []


@dataclass
class _Type:
    name: str
    indent: int
    tags: list[tuple[str, int]]
    has_tests: bool = False


def java_marks(path: str, source: str) -> tuple[list[Mark], list[str]]:
    """Return those of a file, by lines and indentation: on a test, or on its class for each test."""
    marks: list[Mark] = []
    problems: list[str] = []
    types: list[_Type] = []
    tags: list[tuple[str, int]] = []
    is_test = False
    for number, line in enumerate([*source.splitlines(), "end"], start=1):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if statement := _STATEMENT_TAG.fullmatch(text):
            tags.append((statement[1], number))
        elif _UNCLEAR.search(text):
            problems.append(f"{path}:{number}: a tag stands alone in its line, and so does @Test")
        is_test = is_test or _JAVA_TEST.match(text) is not None
        if not text or text.startswith(("@", "//", "/*", "*", ")")):
            continue
        while types and types[-1].indent >= indent:
            closed = types.pop()
            problems += [] if closed.has_tests else _misplaced(path, closed.tags)
        if indent != (types[-1].indent + _JAVA_INDENT if types else 0) or text.startswith("}"):
            continue
        if declared := _JAVA_TYPE.search(text):
            types.append(_Type(declared[1], indent, tags))
        elif is_test and types and (method := re.search(r"(\w+)\(", text)):
            test = "::".join([*(type_.name for type_ in types), method[1]])
            of_types = [tag for type_ in types for tag in type_.tags]
            marks += [Mark(path, test, id_, line) for id_, line in of_types + tags]
            for type_ in types:
                type_.has_tests = True
        else:
            problems += _misplaced(path, tags)
        tags, is_test = [], False
    return marks, problems


def _misplaced(path: str, tags: list[tuple[str, int]]) -> list[str]:
    return [f"{path}:{line}: the tag stands on something that is no test" for _, line in tags]
