"""``python -m tools.reference``: write the reference pages, or with --check see whether they are fresh."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.freshness import asked_only_to_check, kept_fresh
from tools.reference.attacks import security_page
from tools.reference.broker import broker_page
from tools.reference.commands import commands_page
from tools.reference.configuration import configuration_page
from tools.reference.messages import messages_page
from tools.reference.metrics import metrics_page
from tools.reference.roles import roles_page

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES: Mapping[str, Callable[[Path], str]] = {
    "SECURITY.md": security_page,
    "docs/broker-properties.md": broker_page,
    "docs/command-line.md": commands_page,
    "docs/configuration.md": configuration_page,
    "docs/messages.md": messages_page,
    "docs/metrics.md": metrics_page,
    "docs/role-variables.md": roles_page,
}


def main(arguments: list[str] | None = None, root: Path = REPOSITORY) -> int:
    """Run; return 0 when all is well, 1 for a stale page."""
    check = asked_only_to_check("python -m tools.reference", __doc__, arguments)
    fresh = [
        kept_fresh(root / name, make(REPOSITORY), check=check, command="make reference")
        for name, make in PAGES.items()
    ]
    return 0 if all(fresh) else 1


if __name__ == "__main__":
    sys.exit(main())
