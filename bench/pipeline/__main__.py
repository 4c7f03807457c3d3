"""`make bench-spark`: make samples, measure in lanes, save, judge, and write docs/bench-spark.md."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from bench.pipeline.causes import causes
from bench.pipeline.claims import claims
from bench.pipeline.data import make
from bench.pipeline.foretold import Accuracy, measure_accuracy
from bench.pipeline.ingest import measure_ingest
from bench.pipeline.machine import this_machine
from bench.pipeline.page import page
from bench.pipeline.plan import BASE, FULL, SMALL, Lane, Profile
from bench.pipeline.results import Figure, Saved, Store
from kquota_pipeline.session import start_session

ROOT = Path(__file__).parents[2]
_PAGE = ROOT / "docs/bench-spark.md"
_OUT = ROOT / "build/bench-spark"
_REPEATS = 3
_INGEST, _FORECAST = "ingest", "forecast"
_CORES = 2


def bench(
    full: Annotated[bool, typer.Option("--full", help="Besides: 30 days, 690 million samples.")] = False,
    small: Annotated[
        bool, typer.Option("--small", help="A little of each, to see that it works; no page.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Measure this step alone; may be given again.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Measure only what is not yet saved.")] = False,
    judge_only: Annotated[
        bool, typer.Option("--judge-only", help="Measure nothing: judge what is saved, write the page.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Where results are saved as they come, and samples made.")] = _OUT,
    keep_samples: Annotated[bool, typer.Option("--keep-samples", help="Leave the samples there.")] = False,
) -> None:
    """Measure what the pipeline costs, beside DuckDB doing the same work in the same run."""
    profile = SMALL if small else FULL if full else BASE
    # A full run has the steps of a base run, of the same fleet.
    folder = out / (SMALL.name if small else BASE.name)
    store, samples = Store(folder), folder / "samples"
    steps: dict[str, Callable[[], Saved]] = {
        _INGEST: lambda: _ingest(profile),
        _FORECAST: lambda: _forecast(profile),
        **{lane.name: lambda lane=lane: _lane(lane, profile, samples) for lane in profile.lanes},  # type: ignore[misc]
    }
    if unknown := set(only or ()) - set(steps):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}; the steps are {', '.join(steps)}")
    if not judge_only:
        wanted = [name for name in steps if not only or name in only]
        for name in wanted:
            if resume and store.load(name) is not None:
                continue
            store.save(steps[name]())
        if not keep_samples:
            shutil.rmtree(samples, ignore_errors=True)
    saved = [found for name in steps if (found := store.load(name)) is not None]
    missing = [name for name in steps if store.load(name) is None]
    verdicts = claims(profile, saved)
    text = page(profile, saved, verdicts, missing, _REPEATS, causes(profile, saved, verdicts))
    typer.echo(text)
    if saved and not small and (judge_only or not missing):
        _PAGE.write_text(text, "utf-8")
        _say(f"written: {_PAGE}")
    raise typer.Exit(0 if all(verdict.holds for verdict in verdicts if verdict.must) else 1)


def _lane(lane: Lane, profile: Profile, samples: Path) -> Saved:
    _say(f"making {lane.days} days of samples, where they are not there yet")
    make(samples, profile.fleet, lane.days)
    _say(f"{lane.name}: {', '.join(lane.works)}; load {os.getloadavg()[0]:.1f}")
    started, load = time.monotonic(), os.getloadavg()[0]
    command = [sys.executable, "-m", "bench.pipeline.lane", lane.engine, str(lane.cores), str(samples)]
    command += [str(lane.days), str(_REPEATS), *lane.works]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    runs = [json.loads(line) for line in found.stdout.splitlines() if line.startswith("{")]
    figures = []
    for work in lane.works:
        own = [run for run in runs if run["work"] == work]
        figures.append(
            Figure(
                engine=lane.engine,
                cores=lane.cores,
                days=lane.days,
                rows=profile.fleet.rows(lane.days),
                work=work,
                answer=own[-1]["answer"],
                cpu_seconds=[run["cpu_seconds"] for run in own],
                wall_seconds=[run["wall_seconds"] for run in own],
            )
        )
        _say(f"  {work}: {figures[-1].cpu:.2f} CPU s, {figures[-1].wall:.2f} s")
    return _saved(lane.name, started, load, figures)


def _ingest(profile: Profile) -> Saved:
    _say(f"{_INGEST}: {profile.ingest_records:,} different records; load {os.getloadavg()[0]:.1f}")
    started, load = time.monotonic(), os.getloadavg()[0]
    found = measure_ingest(profile.ingest_records, _CORES)
    _say(f"  {found['records'] / found['seconds']:,.0f} records/s")
    return _saved(_INGEST, started, load, ingest=found)


def _forecast(profile: Profile) -> Saved:
    _say(f"{_FORECAST}: {profile.months} generated months; load {os.getloadavg()[0]:.1f}")
    started, load = time.monotonic(), os.getloadavg()[0]
    session = start_session("kquota bench", {"spark.master": f"local[{_CORES}]"}, _say)
    try:
        found = measure_accuracy(session, range(1, profile.months + 1))
    finally:
        session.stop()
    return _saved(_FORECAST, started, load, accuracy=found)


def _saved(
    step: str,
    started: float,
    load: float,
    figures: Sequence[Figure] = (),
    ingest: Mapping[str, float] | None = None,
    accuracy: Sequence[Accuracy] = (),
) -> Saved:
    return Saved(
        step=step,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=time.monotonic() - started,
        load=load,
        machine=this_machine(),
        figures=figures,
        ingest=ingest,
        accuracy=accuracy,
    )


def _say(message: str) -> None:
    sys.stderr.write(message + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    typer.run(bench)
