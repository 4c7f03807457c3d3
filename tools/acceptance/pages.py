"""Makes two pages: how far each statement is proven, and by which tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tools.acceptance.marks import Mark
from tools.acceptance.statements import Section, Statement, Statements

_HEAD = """\
# What kquota does, and the tests that prove it

Every statement has an id. A test that proves one carries the id, in Python as
`@pytest.mark.accepts("A9")`, in Java as `@Tag("A9")`. *Planned* means that no test proves the
statement yet; *in part* that it is about real processes and file systems, and only tests without them prove
it so far. The status links to the [tests](acceptance-tests.md). *Decided*, below each table, is our reading
where the source leaves something open, contradicts itself, or is overtaken by Kafka.
"""
_TESTS_HEAD = """\
# The tests of each statement

Which tests prove which of the [statements](acceptance.md).
"""
Proofs = Mapping[str, list[Mark]]


def proofs_of(marks: Iterable[Mark]) -> dict[str, list[Mark]]:
    """Return the tests of each statement id, each test once, in order of path and name."""
    tests: dict[str, dict[tuple[str, str], Mark]] = {}
    for mark in sorted(marks):
        tests.setdefault(mark.statement_id, {}).setdefault((mark.path, mark.test), mark)
    return {id_: list(found.values()) for id_, found in tests.items()}


def statuses(statements: Statements, proofs: Proofs) -> dict[str, str]:
    """Return "proven", "in part" or "planned" for each id."""
    found = {}
    for section in statements.sections:
        paths = statements.real_parts if section.on_real_parts else ("",)
        for id_ in section.statements:
            proven = any(test.path.startswith(paths) for test in proofs.get(id_, ()))
            found[id_] = "proven" if proven else "in part" if id_ in proofs else "planned"
    return found


def summary(found: Mapping[str, str]) -> str:
    """Say how many there are of each status."""
    proven, in_part = (sum(status == wanted for status in found.values()) for wanted in ("proven", "in part"))
    more = f", {in_part} more in part" if in_part else ""
    return f"{proven} of {len(found)} statements are proven by tests{more}."


def render(statements: Statements, proofs: Proofs) -> dict[str, str]:
    """Return the pages by name; paths in them are relative to docs/evidence/."""
    found = statuses(statements, proofs)
    sections = (_section(section, statements.sources, found, proofs) for section in statements.sections)
    tests = (_tests(id_, statement, proofs.get(id_, [])) for id_, statement in statements.by_id.items())
    return {
        "acceptance.md": "\n".join([_HEAD, f"{summary(found)}\n", *sections]),
        "acceptance-tests.md": "\n".join([_TESTS_HEAD, *tests]),
    }


def _section(section: Section, sources: Mapping[str, str], found: Mapping[str, str], proofs: Proofs) -> str:
    lines = [f"## {section.title}", "", f"Source: {sources[section.source]}.", ""]
    lines += ["| id | statement | status |", "|---|---|---|"]
    for id_, one in section.statements.items():
        other_source = f" ({sources[one.source]})" if one.source not in (None, section.source) else ""
        status, count = found[id_], len(proofs.get(id_, ()))
        if count:
            tests = "1 test" if count == 1 else f"{count} tests"
            status += f" by [{tests}](acceptance-tests.md#{id_.lower()})"
        lines.append(f"| {id_} | {one.statement}{other_source} | {status} |")
    decided = [f"- {id_}: {one.decided}" for id_, one in section.statements.items() if one.decided]
    if decided:
        lines += ["", "Decided:", "", *decided]
    return "\n".join(lines) + "\n"


def _tests(id_: str, statement: Statement, tests: Iterable[Mark]) -> str:
    """One line for each test, so that two changes of the same statement's tests merge."""
    lines = [f"- [{test.path.removeprefix('tests/')}](../../{test.path}): `{test.test}`" for test in tests]
    return "\n".join([f"## {id_}", "", statement.statement, "", *(lines or ["None yet."])]) + "\n"
