"""Finds the marks of every test in the repository."""

from __future__ import annotations

from pathlib import Path

from tools.acceptance.java_tags import read_java_tags
from tools.acceptance.marks import BadMark, Marks
from tools.acceptance.python_marks import read_python_marks

PYTHON_ROOTS = ("tests", "extensions")
JAVA_ROOTS = ("callback/src/test",)


def collect_marks(repository: Path, known_ids: frozenset[str]) -> Marks:
    """Return the marks; one that names an unknown statement is bad."""
    found = Marks()
    for path in _files(repository, PYTHON_ROOTS, "*.py"):
        name = path.relative_to(repository).as_posix()
        try:
            found += read_python_marks(name, path.read_text("utf-8"))
        except SyntaxError as error:
            found += Marks(bad=(BadMark(name, error.lineno or 0, f"no Python: {error.msg}"),))
    for path in _files(repository, JAVA_ROOTS, "*.java"):
        found += read_java_tags(path.relative_to(repository).as_posix(), path.read_text("utf-8"))
    unknown = tuple(
        BadMark(mark.path, mark.line, f"{mark.statement_id} is no statement of docs/acceptance.yml")
        for mark in found.good
        if mark.statement_id not in known_ids
    )
    return found + Marks(bad=unknown)


def _files(repository: Path, roots: tuple[str, ...], pattern: str) -> list[Path]:
    return sorted(path for root in roots for path in (repository / root).rglob(pattern))
