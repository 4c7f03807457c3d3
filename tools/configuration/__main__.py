"""``python -m tools.configuration``: write docs/configuration.md, or with --check see whether it is fresh."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.configuration.page import UnexplainedKey, render_page
from tools.freshness import asked_only_to_check, kept_fresh

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLE = REPOSITORY / "packaging/agent.yml.example"
PAGE = REPOSITORY / "docs/configuration.md"


def main(arguments: list[str] | None = None, example: Path = EXAMPLE, page: Path = PAGE) -> int:
    """Run; return 0 when all is well, 1 for a stale page, 2 for a key that is not explained."""
    check = asked_only_to_check("python -m tools.configuration", __doc__, arguments)
    try:
        text = render_page(example.read_text("utf-8"))
    except UnexplainedKey as error:
        print(f"{example.name}: {error}", file=sys.stderr)
        return 2
    return 0 if kept_fresh(page, text, check=check, command="make acceptance") else 1


if __name__ == "__main__":
    sys.exit(main())
