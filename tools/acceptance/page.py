"""Writes docs/acceptance.md: each statement, and the tests that prove it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tools.acceptance.marks import Mark
from tools.acceptance.statements import Section, Statement, all_statements

_HEAD = """\
# What kquota does, and the tests that prove it

<!-- Written by `make acceptance` from acceptance.yml and the marks of the tests. Do not edit. -->

Every statement has an id. A test that proves one carries the id, in Python as
`@pytest.mark.accepts("A9")`, in Java as `@Tag("A9")`. *Decided* is our reading where the source leaves
something open, contradicts itself, or is overtaken by Kafka. *Planned* means that no test proves the
statement yet.
"""


def proofs_by_statement(marks: Iterable[Mark]) -> dict[str, tuple[Mark, ...]]:
    """Return the tests of each statement id, each test once, in order of path and name."""
    tests: dict[str, dict[tuple[str, str], Mark]] = {}
    for mark in sorted(marks):
        tests.setdefault(mark.statement_id, {}).setdefault((mark.path, mark.test), mark)
    return {id_: tuple(found.values()) for id_, found in tests.items()}


def unproven(sections: tuple[Section, ...], proofs: Mapping[str, Sequence[Mark]]) -> list[str]:
    """Return the ids that no test carries, in the page's order."""
    return [statement.id for statement in all_statements(sections) if statement.id not in proofs]


def render_page(sections: tuple[Section, ...], proofs: Mapping[str, Sequence[Mark]]) -> str:
    """Return the page; paths in it are relative to docs/."""
    total = sum(len(section.statements) for section in sections)
    proven = total - len(unproven(sections, proofs))
    parts = [_HEAD, f"{proven} of {total} statements are proven by tests.\n"]
    parts.extend(_section(section, proofs) for section in sections)
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
    status = _status(tests)
    return f"| {statement.id} | {text} | {status} |"


def _status(tests: Sequence[Mark]) -> str:
    if not tests:
        return "planned"
    by_file: dict[str, list[str]] = {}
    for test in tests:
        by_file.setdefault(test.path, []).append(test.test)
    count = "1 test" if len(tests) == 1 else f"{len(tests)} tests"
    files = "; ".join(
        f"[{path.removeprefix('tests/')}](../{path}): {', '.join(f'`{name}`' for name in names)}"
        for path, names in by_file.items()
    )
    return f"proven by {count}: {files}"
