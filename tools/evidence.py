"""``python -m tools.evidence``: write the pages of evidence of this commit to docs/evidence/."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.acceptance.__main__ import main as write_acceptance
from tools.faults import commit_of, read_faults, read_seen, render
from tools.reference.attacks import attacks_page

REPOSITORY = Path(__file__).resolve().parents[1]


def main(repository: Path = REPOSITORY) -> int:
    """Run; return 0 when all is well, and what ``tools.acceptance`` returns otherwise."""
    result = write_acceptance([], repository)
    if result != 0:
        return result
    pages = repository / "docs/evidence"
    (pages / "attacks.md").write_text(attacks_page(repository), "utf-8")
    faults = read_faults(repository).values()
    page = render(faults, read_seen(repository), commit_of(repository))
    (pages / "failure-modes.md").write_text(page, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
