"""``python -m tools.configuration``: write docs/configuration.md, or with --check see whether it is fresh."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.configuration.page import UnexplainedKey, render_page

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLE = REPOSITORY / "packaging/agent.yml.example"
PAGE = REPOSITORY / "docs/configuration.md"


def main(arguments: list[str] | None = None, example: Path = EXAMPLE, page: Path = PAGE) -> int:
    """Run; return 0 when all is well, 1 for a stale page, 2 for a key that is not explained."""
    parser = argparse.ArgumentParser(prog="python -m tools.configuration", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the page is stale")
    check: bool = parser.parse_args(arguments).check
    try:
        text = render_page(example.read_text("utf-8"))
    except UnexplainedKey as error:
        print(f"{example.name}: {error}", file=sys.stderr)
        return 2
    if page.is_file() and page.read_text("utf-8") == text:
        return 0
    if check:
        print(f"{page.name} is stale: run `python -m tools.configuration`.", file=sys.stderr)
        return 1
    page.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
