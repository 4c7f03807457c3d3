"""``python -m tools.faults run F13``: inject faults; ``page``: write docs/failure-modes.md.

What a run of all tests of a fault measured is kept, and the page is written with it.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.faults.catalogue import REPOSITORY, Fault, InvalidCatalogue, read_faults
from tools.faults.figures import keep_seen, read_seen
from tools.faults.page import render
from tools.faults.run import Outcome, run
from tools.freshness import kept_fresh


def main(arguments: list[str] | None = None, repository: Path = REPOSITORY) -> int:
    """Run; return 0 when all is well, 1 for a fault not survived or a stale page, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="inject faults and print a table")
    running.add_argument("faults", nargs="*", help="ids such as F13; all by default")
    running.add_argument("--no-java", action="store_true", help="leave out the plug-in's own tests")
    running.add_argument("--quick", action="store_true", help="leave out what takes minutes")
    writing = commands.add_parser("page", help="write docs/failure-modes.md")
    writing.add_argument("--check", action="store_true", help="write nothing; fail when it is stale")
    options = parser.parse_args(arguments)
    try:
        faults = read_faults(repository)
    except (InvalidCatalogue, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    page, figures = repository / "docs/failure-modes.md", repository / "docs/failure-modes-seen.yml"
    if options.command == "page":
        return _page(faults, page, figures, check=options.check)
    known = {fault.id: fault for fault in faults}
    unknown = [id_ for id_ in options.faults if id_ not in known]
    if unknown:
        print(f"{', '.join(unknown)} is none of {', '.join(known)}", file=sys.stderr)
        return 2
    chosen = [known[id_] for id_ in options.faults] or list(faults)
    outcomes = run(chosen, java=not options.no_java, selection="not long" if options.quick else "")
    Console().print(_table(chosen, outcomes))
    if not (options.no_java or options.quick):
        keep_seen(figures, datetime.now(UTC).date().isoformat(), outcomes)
        _page(faults, page, figures, check=False)
    return 1 if any(outcome.failed or not outcome.passed for outcome in outcomes.values()) else 0


def _page(faults: tuple[Fault, ...], path: Path, figures: Path, *, check: bool) -> int:
    page = render(faults, read_seen(figures))
    return 0 if kept_fresh(path, page, check=check, command="make failure-modes") else 1


def _table(faults: list[Fault], outcomes: dict[str, Outcome]) -> Table:
    table = Table(padding=(0, 1), pad_edge=False, box=None, show_lines=True)
    for column in ("fault", "expected", "seen", "safe after", "normal after", "tests took"):
        table.add_column(column, overflow="fold")
    for fault in faults:
        outcome = outcomes[fault.id]
        style = "red" if outcome.failed else None
        times = (outcome.safe_seconds, outcome.recovery_seconds, outcome.seconds)
        table.add_row(
            fault.id,
            fault.expected,
            outcome.seen,
            *("-" if seconds is None else f"{seconds:.1f} s" for seconds in times),
            style=style,
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
