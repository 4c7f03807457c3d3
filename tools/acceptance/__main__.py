"""``python -m tools.acceptance``: write the pages of statements and tests; ``--check``: are they fresh?"""

from __future__ import annotations

import sys
from pathlib import Path

from tools.acceptance.marks import collect_marks
from tools.acceptance.pages import proofs_of, render, statuses, summary
from tools.acceptance.statements import read_statements
from tools.freshness import asked_only_to_check, kept_fresh

REPOSITORY = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None, repository: Path = REPOSITORY) -> int:
    """Run; return 0 when all is well, 1 for a bad mark or a stale page, 2 for a bad list of statements."""
    check = asked_only_to_check("python -m tools.acceptance", __doc__, arguments)
    try:
        statements = read_statements(repository / "docs/acceptance.yml")
    except (ValueError, OSError) as error:
        print(f"acceptance.yml: {error}", file=sys.stderr)
        return 2
    marks, problems = collect_marks(repository, statements.by_id)
    proofs = proofs_of(marks)
    stale = [
        name
        for name, text in render(statements, proofs).items()
        if not kept_fresh(repository / "docs" / name, text, check=check, command="make acceptance")
    ]
    found = statuses(statements, proofs)
    print(summary(found))
    for status in ("in part", "planned"):
        if ids := [id_ for id_, one in found.items() if one == status]:
            print(f"{status.capitalize()}: {', '.join(ids)}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems or stale else 0


if __name__ == "__main__":
    sys.exit(main())
