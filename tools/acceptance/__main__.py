"""``python -m tools.acceptance``: write docs/acceptance.md, or with --check see whether it is fresh."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.acceptance.collect import collect_marks
from tools.acceptance.page import proofs_by_statement, render_page, tally
from tools.acceptance.statements import InvalidStatements, all_statements, read_sections
from tools.freshness import asked_only_to_check, kept_fresh

REPOSITORY = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None, repository: Path = REPOSITORY) -> int:
    """Run; return 0 when all is well, 1 for a bad mark or a stale page, 2 for a bad list of statements."""
    check = asked_only_to_check("python -m tools.acceptance", __doc__, arguments)
    page_path = repository / "docs/acceptance.md"
    try:
        sections = read_sections(repository / "docs/acceptance.yml")
    except (InvalidStatements, OSError) as error:
        print(f"acceptance.yml: {error}", file=sys.stderr)
        return 2
    known_ids = frozenset(statement.id for statement in all_statements(sections))
    marks = collect_marks(repository, known_ids)
    proofs = proofs_by_statement(marks.good)
    page = render_page(sections, proofs)
    found = tally(sections, proofs)

    fresh = kept_fresh(page_path, page, check=check, command="make acceptance")
    print(found.sentence)
    if found.in_part:
        print(f"In part: {', '.join(found.in_part)}")
    if found.planned:
        print(f"Planned: {', '.join(found.planned)}")
    for bad in marks.bad:
        print(bad, file=sys.stderr)
    return 1 if marks.bad or not fresh else 0


if __name__ == "__main__":
    sys.exit(main())
