"""``python -m tools.acceptance``: see which tests prove what, and write that to docs/evidence/."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.acceptance.marks import collect_marks
from tools.acceptance.pages import proofs_of, render, statuses, summary
from tools.acceptance.statements import read_statements

REPOSITORY = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None, repository: Path = REPOSITORY) -> int:
    """Run; return 0 when all is well, 1 for a bad mark, 2 for a bad list of statements."""
    argparse.ArgumentParser(prog="python -m tools.acceptance", description=__doc__).parse_args(arguments)
    try:
        statements = read_statements(repository / "docs/acceptance.yml")
    except (ValueError, OSError) as error:
        print(f"acceptance.yml: {error}", file=sys.stderr)
        return 2
    marks, problems = collect_marks(repository, statements.by_id)
    proofs = proofs_of(marks)
    pages = repository / "docs/evidence"
    pages.mkdir(exist_ok=True)
    for name, text in render(statements, proofs).items():
        (pages / name).write_text(text, "utf-8")
    found = statuses(statements, proofs)
    print(summary(found))
    for status in ("in part", "planned"):
        if ids := [id_ for id_, one in found.items() if one == status]:
            print(f"{status.capitalize()}: {', '.join(ids)}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
