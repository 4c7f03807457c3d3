"""The command line of all benches: measure, save, judge; print and write what it shows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape

from bench.harness.bench import REPOSITORY, Bench, Measurement, Profile, Shared, machine
from bench.harness.page import page
from bench.harness.results import Saved, Store, UnreadableResults
from kquota import __version__


def main(bench: Bench[Shared]) -> None:
    """Run a bench by its arguments; exit with 1 if a claim is broken or a measurement failed."""

    def run(
        only: Annotated[
            list[str] | None,
            typer.Option(help="Measure this group or measurement alone; may be given again."),
        ] = None,
        full: Annotated[bool, typer.Option("--full", help="Every measurement.")] = False,
        small: Annotated[
            bool, typer.Option("--small", help="A little, to see that it works; no page.")
        ] = False,
        resume: Annotated[bool, typer.Option("--resume", help="Measure only what is not yet saved.")] = False,
        judge_only: Annotated[
            bool, typer.Option("--judge-only", help="Measure nothing: judge what is saved.")
        ] = False,
        minutes: Annotated[
            float | None, typer.Option(help="Begin no measurement after this long; continue with --resume.")
        ] = None,
        out: Annotated[Path | None, typer.Option(help="Where results are saved, if not in bench/.")] = None,
    ) -> None:
        console = Console()
        profile = Profile.SMALL if small else Profile.FULL if full else Profile.USUAL
        planned = list(bench.measurements(profile))
        names = {name for entry in planned for name in (entry.group, entry.name)}
        if unknown := set(only or ()) - names:
            raise typer.BadParameter(f"{', '.join(sorted(unknown))}: choose of {', '.join(sorted(names))}")
        path = out or (REPOSITORY / "build" / f"{bench.page.stem}-small.jsonl" if small else bench.results)
        try:
            store = Store(path, bench.kinds)
        except UnreadableResults as error:
            console.print(f"[red]{escape(str(error))}[/]")
            raise typer.Exit(1) from None
        chosen = [entry for entry in planned if not only or {entry.group, entry.name} & set(only)]
        wanted = [entry for entry in chosen if not (resume and store.load([entry.name]))]
        failed = [] if judge_only or not wanted else measure(bench, wanted, store, minutes, console.print)
        # The page shows all that is saved, of whatever profile it is.
        known = planned if small else list(bench.measurements(Profile.FULL))
        saved = store.load(entry.name for entry in known)
        missing = [entry.name for entry in planned if not store.load([entry.name])]
        broken = judge(bench, saved, missing, console, writes=not small and (judge_only or not missing))
        raise typer.Exit(1 if broken or failed else 0)

    typer.run(run)


def measure(
    bench: Bench[Shared],
    wanted: Sequence[Measurement[Shared]],
    store: Store,
    minutes: float | None,
    report: Callable[[str], None],
) -> list[str]:
    """Measure and save; return the names of those that failed."""
    failed = []
    with bench.open(report) as shared:
        where, began_at = machine((f"kquota {__version__}", *bench.versions(shared))), time.monotonic()
        for number, entry in enumerate(wanted, start=1):
            started, load = time.monotonic(), os.getloadavg()[0]
            if minutes is not None and started - began_at > minutes * 60:
                report(f"{len(wanted) - number + 1} measurements remain; --resume continues")
                break
            report(f"{number}/{len(wanted)} {entry.name}; load {load:.1f}")
            measured_at = datetime.now(UTC).isoformat(timespec="seconds")
            try:
                figures = tuple(entry.run(shared))
            except Exception as error:
                # The other measurements are worth having: this one can be repeated with --resume.
                report(f"[red]{entry.name} failed:[/] {type(error).__name__}: {escape(str(error))}")
                failed.append(entry.name)
                continue
            store.save(Saved(entry.name, measured_at, time.monotonic() - started, load, where, figures))
    return failed


def judge(
    bench: Bench[Shared], saved: Sequence[Saved], missing: Sequence[str], console: Console, *, writes: bool
) -> bool:
    """Print all rows, write the page where that is wanted; return whether a claim is broken."""
    figures = [figure for entry in saved for figure in entry.figures]
    claims = list(bench.claims(figures))
    if saved:
        shown, written = (
            page(bench.template, bench.command, saved, claims, missing, whole=whole, **bench.functions)
            for whole in (True, False)
        )
        console.print(Markdown(shown))
        if writes:
            bench.page.write_text(written, "utf-8")
            bench.draw(figures)
            console.print(f"written: {bench.page}")
    elif missing:
        console.print(f"not yet measured (--resume): {', '.join(missing)}")
    broken = [claim for claim in claims if claim.asserted and not claim.holds]
    for claim in broken:
        console.print(f"[red]does not hold:[/] {escape(claim.name)}: {escape(claim.measured)}")
    return bool(broken)
