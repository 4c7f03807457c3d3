"""`make conformance`: tries every system with every fill, and writes the page."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape

from bench.harness.bench import REPOSITORY, machine
from bench.harness.results import Saved, Store, UnreadableResults
from conformance.figures import Fill, Survival
from conformance.page import page
from conformance.plan import Plan
from conformance.system import System
from conformance.systems import systems
from conformance.trial import run as run_trial
from testbed.loopback.runtime import ensure_kafka_runtime
from testbed.loopback.volumes import require_loop_volumes

_RESULTS = REPOSITORY / "conformance" / "results.jsonl"
_PAGE = REPOSITORY / "docs" / "conformance.md"


def trial_name(system: str, fill: Fill) -> str:
    """Return the name under which a trial is saved."""
    return f"{system} {fill.name.lower()}"


def main(
    only: Annotated[
        list[str] | None, typer.Option(help="Try this system or trial alone; may be given again.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Only trials that are not yet saved.")] = False,
    write_page: Annotated[
        bool, typer.Option("--page", help="Try nothing: write the page from what is saved.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Where results are saved.")] = _RESULTS,
) -> None:
    """Does your Kafka survive a full disk?"""
    console = Console()
    known = systems()
    planned = {trial_name(name, fill): (known[name], fill) for name in known for fill in Fill}
    if unknown := set(only or ()) - known.keys() - planned.keys():
        names = ", ".join([*known, *planned])
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: choose of {names}")
    try:
        store = Store(out, (Survival,))
    except UnreadableResults as error:
        console.print(f"[red]{escape(str(error))}[/]")
        raise typer.Exit(1) from None
    wanted = [
        name
        for name, (tried, _) in planned.items()
        if not write_page
        and (not only or {name, tried.name} & set(only))
        and not (resume and store.load([name]))
    ]
    failed = [name for name in wanted if not _try(name, *planned[name], store, console)]
    saved = store.load(planned)
    if saved:
        missing = [name for name in planned if not store.load([name])]
        text = page(saved, known, Plan(), missing)
        console.print(Markdown(text))
        if out == _RESULTS:
            _PAGE.write_text(text, "utf-8")
            console.print(f"written: {_PAGE}")
    raise typer.Exit(1 if failed else 0)


def _try(name: str, tried: type[System], fill: Fill, store: Store, console: Console) -> bool:
    """Run a trial and save it; whether it came about."""
    require_loop_volumes()

    def report(line: str) -> None:
        console.print(escape(line), highlight=False, soft_wrap=True)

    runtime = ensure_kafka_runtime(report=report)
    load = os.getloadavg()[0]
    report(f"{name}; load {load:.1f}")
    started, measured_at = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    try:
        subject = tried(runtime)
        where = machine((f"Kafka {runtime.version}", *subject.versions()))
        figures = (run_trial(subject, fill, Plan(), report),)
    except Exception as error:
        # The other trials are worth having: this one can be repeated with --resume.
        console.print(f"[red]{name} failed:[/] {type(error).__name__}: {escape(str(error))}")
        return False
    store.save(Saved(name, measured_at, time.monotonic() - started, load, where, figures))
    return True


if __name__ == "__main__":
    typer.run(main)
