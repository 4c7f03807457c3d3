"""The faults: what each is, what is expected of it, and which tests inject it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from tools.acceptance.collect import collect_marks
from tools.acceptance.marks import Mark
from tools.acceptance.statements import all_statements, read_sections

REPOSITORY = Path(__file__).resolve().parents[2]


class InvalidCatalogue(ValueError):
    """docs/failure-modes.yml is not as it has to be; the text names the place."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``expected`` is the statement of docs/acceptance.yml; ``tests`` carry its id."""

    id: str
    expected: str
    problem: str
    seen: str
    does: str
    act: str
    tests: tuple[Mark, ...]

    @property
    def has_java_tests(self) -> bool:
        """Whether tests of the plug-in inject it, too."""
        return any(mark.path.endswith(".java") for mark in self.tests)


def read_faults(repository: Path = REPOSITORY) -> tuple[Fault, ...]:
    """Return all faults, in the order of their numbers.

    Raises:
        InvalidCatalogue: a fault without a row, a row without a fault, or a text that is missing.
        OSError: a file can't be read.
    """
    sections = read_sections(repository / "docs/acceptance.yml")
    statements = {s.id: s for s in all_statements(sections) if s.id.startswith("F")}
    rows = yaml.safe_load((repository / "docs/failure-modes.yml").read_text("utf-8"))
    if not isinstance(rows, dict) or rows.keys() != statements.keys():
        different = sorted(set(rows or ()) ^ statements.keys())
        raise InvalidCatalogue(f"failure-modes.yml: {', '.join(different)} is not in both lists")
    marks = collect_marks(repository, frozenset(s.id for s in all_statements(sections))).good
    return tuple(
        Fault(
            id_,
            statement.text,
            _text(rows[id_], "problem", id_),
            _text(rows[id_], "seen", id_),
            _text(rows[id_], "does", id_),
            _text(rows[id_], "act", id_),
            tuple(sorted(mark for mark in marks if mark.statement_id == id_)),
        )
        for id_, statement in sorted(statements.items(), key=lambda entry: int(entry[0][1:]))
    )


def _text(row: object, key: str, id_: str) -> str:
    value = row.get(key) if isinstance(row, dict) else None
    if not isinstance(value, str) or not value.strip() or "|" in value or "\n" in value:
        raise InvalidCatalogue(
            f"failure-modes.yml: {id_}.{key}: must be a line of text without a vertical bar"
        )
    return value
