"""Reads ``@pytest.mark.accepts("A9")`` from Python sources, without importing them.

A mark stands on a test function, on a test class, in ``pytest.param(…, marks=…)`` of a test's decorator,
or in ``pytestmark`` of a class or module. On a class or module it counts for each of its tests.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.acceptance.marks import BadMark, Mark, Marks

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_python_marks(path: str, source: str) -> Marks:
    """Return the marks of one file.

    Raises:
        SyntaxError: the file is no Python.
    """
    return _Reader(path, ast.parse(source)).read()


class _Reader:
    def __init__(self, path: str, tree: ast.Module) -> None:
        self._path, self._tree = path, tree
        self._collected = path.rsplit("/", 1)[-1].startswith("test_")
        self._attributed: set[ast.Call] = set()
        self._good: list[Mark] = []
        self._bad: list[BadMark] = []

    def read(self) -> Marks:
        self._scope(self._tree.body, "", ())
        for call in _accepts_calls(self._tree):
            if call not in self._attributed:
                self._bad.append(
                    BadMark(self._path, call.lineno, "the mark stands where pytest finds no test")
                )
        return Marks(tuple(self._good), tuple(self._bad))

    def _scope(self, body: list[ast.stmt], prefix: str, inherited: tuple[ast.Call, ...]) -> None:
        here = (*inherited, *(call for node in body if _is_pytestmark(node) for call in _accepts_calls(node)))
        tests = 0
        for node in body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() if self._is_test(node):
                    tests += 1
                    self._test(prefix + node.name, (*here, *_decorator_calls(node)))
                case ast.ClassDef() if self._collected and node.name.startswith("Test"):
                    tests += 1
                    self._scope(node.body, f"{prefix}{node.name}::", (*here, *_decorator_calls(node)))
        if tests:
            self._attributed.update(here)

    def _is_test(self, node: _Function) -> bool:
        return self._collected and node.name.startswith("test")

    def _test(self, name: str, calls: tuple[ast.Call, ...]) -> None:
        for call in calls:
            self._attributed.add(call)
            ids = [
                arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
            ]
            if not ids or len(ids) != len(call.args) or call.keywords:
                problem = BadMark(
                    self._path, call.lineno, "the mark must name its statements as literal texts"
                )
                if problem not in self._bad:
                    self._bad.append(problem)
            self._good.extend(Mark(self._path, name, id_, call.lineno) for id_ in ids)


def _accepts_calls(node: ast.AST) -> Iterator[ast.Call]:
    for child in ast.walk(node):
        if isinstance(child, ast.Call) and ast.unparse(child.func) in ("pytest.mark.accepts", "mark.accepts"):
            yield child


def _decorator_calls(node: _Function | ast.ClassDef) -> Iterator[ast.Call]:
    for decorator in node.decorator_list:
        yield from _accepts_calls(decorator)


def _is_pytestmark(node: ast.stmt) -> bool:
    match node:
        case (
            ast.Assign(targets=[ast.Name(id="pytestmark")]) | ast.AnnAssign(target=ast.Name(id="pytestmark"))
        ):
            return True
    return False
