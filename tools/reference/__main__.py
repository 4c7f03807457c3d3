"""``python -m tools.reference``: write the reference pages, or with --check see whether they are fresh."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.reference.broker import broker_page
from tools.reference.commands import commands_page
from tools.reference.messages import messages_page
from tools.reference.metrics import metrics_page
from tools.reference.roles import roles_page

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
PAGES: Mapping[str, Callable[[Path], str]] = {
    "broker-properties.md": broker_page,
    "command-line.md": commands_page,
    "messages.md": messages_page,
    "metrics.md": metrics_page,
    "role-variables.md": roles_page,
}


def main(arguments: list[str] | None = None, docs: Path = DOCS) -> int:
    """Run; return 0 when all is well, 1 for a stale page."""
    parser = argparse.ArgumentParser(prog="python -m tools.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page is stale")
    check: bool = parser.parse_args(arguments).check
    stale = []
    for name, make in PAGES.items():
        page, text = docs / name, make(REPOSITORY)
        if page.is_file() and page.read_text("utf-8") == text:
            continue
        stale.append(name)
        if not check:
            page.write_text(text, "utf-8")
    if check and stale:
        print(f"{', '.join(stale)}: stale, run `python -m tools.reference`.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
