"""Writes docs/acceptance.md: each statement, and the tests that prove it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tools.acceptance.marks import Mark
from tools.acceptance.statements import Section, Statement, all_statements

_HEAD = """\
# What kquota does, and the tests that prove it

<!-- Written by `make acceptance` from acceptance.yml and the marks of the tests. Do not edit. -->

Every statement has an id. A test that proves one carries the id, in Python as
`@pytest.mark.accepts("A9")`, in Java as `@Tag("A9")`. *Decided* is our reading where the source leaves
something open, contradicts itself, or is overtaken by Kafka. *Planned* means that no test proves the
statement yet; *in part* that it is about real processes and file systems, and only tests without them prove
it so far. The status of a statement links to its tests, at the end of the page.
"""


def proofs_by_statement(marks: Iterable[Mark]) -> dict[str, tuple[Mark, ...]]:
    """Return the tests of each statement id, each test once, in order of path and name."""
    tests: dict[str, dict[tuple[str, str], Mark]] = {}
    for mark in sorted(marks):
        tests.setdefault(mark.statement_id, {}).setdefault((mark.path, mark.test), mark)
    return {id_: tuple(found.values()) for id_, found in tests.items()}


@dataclass(frozen=True, slots=True)
class Tally:
    """The ids of all statements, in the page's order, by how far they are proven."""

    proven: tuple[str, ...]
    in_part: tuple[str, ...]
    planned: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """How many there are of each."""
        total = len(self.proven) + len(self.in_part) + len(self.planned)
        in_part = f", {len(self.in_part)} more in part" if self.in_part else ""
        return f"{len(self.proven)} of {total} statements are proven by tests{in_part}."


def tally(sections: tuple[Section, ...], proofs: Mapping[str, Sequence[Mark]]) -> Tally:
    """Sort the statements by what proves them."""
    proven: list[str] = []
    in_part: list[str] = []
    planned: list[str] = []
    for statement in all_statements(sections):
        tests = proofs.get(statement.id, ())
        if _is_proven(statement, tests):
            proven.append(statement.id)
        else:
            (in_part if tests else planned).append(statement.id)
    return Tally(tuple(proven), tuple(in_part), tuple(planned))


def render_page(sections: tuple[Section, ...], proofs: Mapping[str, Sequence[Mark]]) -> str:
    """Return the page; paths in it are relative to docs/."""
    parts = [_HEAD, f"{tally(sections, proofs).sentence}\n"]
    parts.extend(_section(section, proofs) for section in sections)
    parts.append("## The tests of each statement\n")
    parts.extend(
        _tests(statement.id, proofs[statement.id])
        for statement in all_statements(sections)
        if statement.id in proofs
    )
    return "\n".join(parts)


def _section(section: Section, proofs: Mapping[str, Sequence[Mark]]) -> str:
    sources = list(dict.fromkeys(statement.source for statement in section.statements))
    lines = [
        f"## {section.title}",
        "",
        f"Source: {sources[0]}.",
        "",
        "| id | statement | status |",
        "|---|---|---|",
    ]
    for statement in section.statements:
        lines.append(_row(statement, sources[0], proofs.get(statement.id, ())))
    return "\n".join(lines) + "\n"


def _row(statement: Statement, usual_source: str, tests: Sequence[Mark]) -> str:
    text = statement.text
    if statement.decided is not None:
        text += f" *Decided:* {statement.decided}"
    if statement.source != usual_source:
        text += f" ({statement.source})"
    status = _status(statement, tests)
    return f"| {statement.id} | {text} | {status} |"


def _is_proven(statement: Statement, tests: Sequence[Mark]) -> bool:
    return any(statement.is_proven_by(test.path) for test in tests)


def _status(statement: Statement, tests: Sequence[Mark]) -> str:
    if not tests:
        return "planned"
    count = "1 test" if len(tests) == 1 else f"{len(tests)} tests"
    how_far = "proven" if _is_proven(statement, tests) else "in part"
    return f"{how_far} by [{count}](#{statement.id.lower()})"


def _tests(statement_id: str, tests: Sequence[Mark]) -> str:
    """One line for each test, so that two changes of the same statement's tests merge."""
    lines = [f"- [{test.path.removeprefix('tests/')}](../{test.path}): `{test.test}`" for test in tests]
    return "\n".join([f"### {statement_id}", "", *lines]) + "\n"
