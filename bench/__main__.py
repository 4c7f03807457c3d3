"""`make bench`: measure, save, judge; print and write what it shows; fail where a claim does not hold."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from bench.claims import judge
from bench.machine import Machine, this_machine
from bench.page import page, tables
from bench.peer_jars import PEER
from bench.plan import Bench, Measurement, Scenario, measurements
from bench.plot import PLOT, plot_overshoots
from bench.results import Results
from bench.store import Saved, Store, UnreadableResults
from kquota import __version__
from testbed.loopback.runtime import KafkaRuntime, ensure_kafka_runtime
from testbed.loopback.volumes import require_loop_volumes

_REPOSITORY = Path(__file__).resolve().parents[1]
_PAGE = _REPOSITORY / "docs" / "bench.md"
_RESULTS = _REPOSITORY / "build" / "bench.jsonl"


def bench(
    only: Annotated[
        list[Scenario] | None, typer.Option(help="Measure this scenario alone; may be given again.")
    ] = None,
    full: Annotated[bool, typer.Option(help="Every case: two hours, not twenty minutes.")] = False,
    out: Annotated[Path, typer.Option(help="Where results are saved, as JSON lines.")] = _RESULTS,
    resume: Annotated[bool, typer.Option(help="Measure only what is not yet saved there.")] = False,
    judge_only: Annotated[bool, typer.Option(help="Measure nothing: judge what is saved there.")] = False,
    minutes: Annotated[
        float | None, typer.Option(help="Begin no measurement after so long; go on with --resume.")
    ] = None,
    write_page: Annotated[bool, typer.Option(help="Write docs/bench.md and the plot.")] = True,
) -> None:
    """Measure how producers are held by kquota and by the peer plug-in, and what kquota costs.

    The page shows everything of the profile that is saved; it is written when nothing is missing, and with
    --judge-only, then with a list of what is missing.
    """
    console = Console()
    try:
        store = Store(out)
    except UnreadableResults as error:
        console.print(f"[red]{error}[/]")
        raise typer.Exit(1) from None
    profile = measurements(full=full)
    chosen = [entry for entry in profile if not only or entry.scenario in only]
    failed: list[str] = []
    if not judge_only:
        wanted = [entry for entry in chosen if not (resume and store.has(entry.name))]
        failed = _measure(wanted, store, minutes, console)
    saved = store.load(entry.name for entry in profile)
    missing = [entry.name for entry in profile if not store.has(entry.name)]
    results = Results.together(entry.results for entry in saved)
    verdicts = judge(results)
    for table in tables(results, verdicts):
        console.print(table)
    if missing:
        console.print(f"not yet measured (--resume): {', '.join(missing)}")
    if write_page and saved and (judge_only or not missing):
        _PAGE.write_text(page(saved, verdicts, missing, full=full), encoding="utf-8")
        console.print(f"written: {_PAGE}")
        if results.overshoots:
            plot_overshoots(results.overshoots)
            console.print(f"written: {PLOT}")
    broken = [verdict for verdict in verdicts if verdict.asserted and not verdict.holds]
    for verdict in broken:
        console.print(f"[red]does not hold:[/] {verdict.statement}: {verdict.measured}")
    raise typer.Exit(1 if broken or failed else 0)


def _measure(
    wanted: Sequence[Measurement], store: Store, minutes: float | None, console: Console
) -> list[str]:
    """Measure and save; returns the names of those that failed."""
    failed = []
    require_loop_volumes()
    runtime = ensure_kafka_runtime(report=console.print)
    machine = _machine(runtime)
    began_at = time.monotonic()
    with Bench(runtime) as shared:
        for number, entry in enumerate(wanted, start=1):
            started, load = time.monotonic(), os.getloadavg()[0]
            if minutes is not None and started - began_at > minutes * 60:
                console.print(f"{len(wanted) - number + 1} measurements left for later")
                break
            console.print(f"{number}/{len(wanted)} {entry.name}; load {load:.1f}")
            measured_at = datetime.now(UTC).isoformat(timespec="seconds")
            try:
                results = entry.run(shared)
            except Exception as error:
                # The other measurements are worth having: this one can be repeated with --resume.
                console.print(f"[red]{entry.name} failed:[/] {type(error).__name__}: {escape(str(error))}")
                shared.stop_systems()
                failed.append(entry.name)
                continue
            store.save(Saved(entry.name, measured_at, time.monotonic() - started, load, machine, results))
    return failed


def _machine(runtime: KafkaRuntime) -> Machine:
    told = subprocess.run([runtime.java, "-version"], capture_output=True, text=True, check=True).stderr
    java = told.splitlines()[0].replace('"', "")
    return this_machine(java=java, kafka_version=runtime.version, kquota_version=__version__, peer=PEER)


if __name__ == "__main__":
    typer.run(bench)
