"""``python -m tools.faults run F13``: inject faults; ``page``: write docs/failure-modes.md.

What each test showed is saved below build/ when it ends; a fault whose tests have all passed is written to
the page at once. ``run --resume`` goes on with what has not passed yet.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.faults.catalogue import REPOSITORY, Fault, InvalidCatalogue, read_faults
from tools.faults.figures import keep_seen, read_seen
from tools.faults.page import render
from tools.faults.results import Results
from tools.faults.run import Outcome, outcome, run, tests_of
from tools.freshness import kept_fresh


def main(arguments: list[str] | None = None, repository: Path = REPOSITORY) -> int:
    """Run; return 0 when all is well, 1 for a fault not survived or a stale page, 2 for bad input."""
    options = _read(arguments)
    try:
        faults = read_faults(repository)
    except (InvalidCatalogue, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    page = Page(faults, repository)
    if options.command == "page":
        return 0 if page.write(check=options.check) else 1
    known = {fault.id: fault for fault in faults}
    unknown = [id_ for id_ in options.faults if id_ not in known]
    if unknown:
        print(f"{', '.join(unknown)} is none of {', '.join(known)}", file=sys.stderr)
        return 2
    chosen = [known[id_] for id_ in options.faults] or list(faults)
    if not options.quick:
        results = Results(repository / "build/faults/results.jsonl")
        try:
            run(
                chosen,
                results,
                java=not options.no_java,
                resume=options.resume,
                minutes=options.minutes,
                look=lambda: page.keep(_outcomes(chosen, results)),
            )
        except KeyboardInterrupt:
            print("Stopped; --resume goes on with what has not passed yet.", file=sys.stderr)
        outcomes = _outcomes(chosen, results)
        page.keep(outcomes)
        Console().print(_table(chosen, outcomes))
        return 0 if all(seen.survived for seen in outcomes.values()) else 1
    with tempfile.TemporaryDirectory(prefix="kquota-faults-") as directory:
        results = Results(Path(directory) / "results.jsonl")
        run(chosen, results, java=not options.no_java, quick=options.quick)
        outcomes = _outcomes(chosen, results)
    Console().print(_table(chosen, outcomes))
    return 1 if any(seen.failed or not seen.passed for seen in outcomes.values()) else 0


def _read(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="inject faults and print a table")
    running.add_argument("faults", nargs="*", help="ids such as F13; all by default")
    running.add_argument("--resume", action="store_true", help="run only what has not passed yet")
    running.add_argument("--minutes", type=float, help="begin no test after so long; go on with --resume")
    running.add_argument("--no-java", action="store_true", help="leave out the plug-in's own tests")
    running.add_argument("--quick", action="store_true", help="leave out what takes minutes; nothing is kept")
    writing = commands.add_parser("page", help="write docs/failure-modes.md")
    writing.add_argument("--check", action="store_true", help="write nothing; fail when it is stale")
    return parser.parse_args(arguments)


class Page:
    """docs/failure-modes.md with the figures beside it."""

    def __init__(self, faults: tuple[Fault, ...], repository: Path) -> None:
        self._faults = faults
        self._path = repository / "docs/failure-modes.md"
        self._figures = repository / "docs/failure-modes-seen.yml"
        self._kept: dict[str, Outcome] = {}

    def keep(self, outcomes: dict[str, Outcome]) -> None:
        """Write those that were survived and are new."""
        new = {id_: seen for id_, seen in outcomes.items() if seen.survived and self._kept.get(id_) != seen}
        if new:
            self._kept |= new
            keep_seen(self._figures, new)
            self.write(check=False)

    def write(self, *, check: bool) -> bool:
        """Write the page, or only see whether it is fresh."""
        text = render(self._faults, read_seen(self._figures))
        return kept_fresh(self._path, text, check=check, command="make failure-modes")


def _outcomes(faults: list[Fault], results: Results) -> dict[str, Outcome]:
    known = results.read()
    return {fault.id: outcome(tests_of(fault), known) for fault in faults}


def _table(faults: list[Fault], outcomes: dict[str, Outcome]) -> Table:
    table = Table(padding=(0, 1), pad_edge=False, box=None, show_lines=True)
    for column in ("fault", "expected", "seen", "safe after", "normal after", "tests took"):
        table.add_column(column, overflow="fold")
    for fault in faults:
        seen = outcomes[fault.id]
        style = "red" if seen.failed else None
        times = (seen.safe_seconds, seen.recovery_seconds, seen.seconds)
        table.add_row(
            fault.id,
            fault.expected,
            seen.seen,
            *("-" if seconds is None else f"{seconds:.1f} s" for seconds in times),
            style=style,
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
