"""`make scale`: measure an agent beside large clusters, simulate fleets, write docs/scale.md."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench.scale.agent_cost import AgentCost, measure_agent
from bench.scale.client_cost import measure_clients
from bench.scale.core_cost import measure_core
from bench.scale.drawing import draw
from bench.scale.fleet import SCENARIOS, Course, simulate
from bench.scale.page import Run, page, tables
from kquota import __version__
from kquota.daemon.publication import regular_interval_seconds
from testbed.loopback.runtime import ensure_kafka_runtime

_DOCS = Path(__file__).resolve().parents[2] / "docs"
_SIZES = (100, 1000)
_CLIENT_SIZES = (3, *_SIZES)
_PARTS = ("core", "clients", "agent", "fleet")
_VOLUMES = 8
_INTERVAL_SECONDS, _STALENESS_SECONDS = 5.0, 60.0  # the defaults
# As often as agents report in a cluster of that size, and at the end more often than they ever do.
_CASES = (
    *((size, regular_interval_seconds(size, _INTERVAL_SECONDS, _STALENESS_SECONDS)) for size in _SIZES),
    (_SIZES[-1], _INTERVAL_SECONDS),
)


def scale(
    seconds: Annotated[float, typer.Option(help="How long each agent is watched.")] = 60.0,
    skip_agent: Annotated[
        bool,
        typer.Option("--skip-agent", help="Leave out what needs a quiet machine: a real agent and broker."),
    ] = False,
    only: Annotated[str, typer.Option(help="core, clients, agent or fleet; the page stays as it is.")] = "",
) -> None:
    """Measure and simulate; fail if a simulated disk of a protected fleet fills."""
    if only not in ("", *_PARTS):
        raise typer.BadParameter(f"{only!r} is none of {', '.join(_PARTS)}", param_hint="--only")
    console = Console()
    load_before = os.getloadavg()
    runtime = ensure_kafka_runtime(report=console.print)
    core = [measure_core(size, _VOLUMES) for size in _SIZES] if only in ("", "core") else []
    clients = [measure_clients(size) for size in _CLIENT_SIZES] if only in ("", "clients") else []
    agents: list[AgentCost] = []
    for size, interval_seconds in _CASES if only in ("", "agent") and not skip_agent else ():
        console.print(f"an agent beside {size} brokers that report every {interval_seconds:g} s")
        agents.append(
            measure_agent(
                runtime,
                size,
                _VOLUMES,
                interval_seconds=interval_seconds,
                seconds=seconds,
                say=console.print,
            )
        )
    courses: list[Course] = []
    for scenario in SCENARIOS if only in ("", "fleet") else ():
        console.print(f"{scenario.name}: {scenario.days} days")
        courses += [simulate(scenario, protected=protected) for protected in (True, False)]
    for rows in tables(core, clients, agents, courses):
        console.print(rows.table())
    if not only:
        run = Run(
            date=datetime.now(UTC).date().isoformat(),
            cores=os.cpu_count() or 1,
            load_before=load_before[0],
            load_after=os.getloadavg()[0],
            kafka_version=runtime.version,
            kquota_version=__version__,
        )
        for course in courses:
            if course.protected:
                draw(course, _DOCS / "img" / f"scale-{course.scenario.name}.svg")
        (_DOCS / "scale.md").write_text(page(core, clients, agents, courses, run), "utf-8")
    full = [c.scenario.name for c in courses if c.protected and c.full_after_days is not None]
    if full:
        console.print(f"a disk of a protected fleet filled: {', '.join(full)}", style="red")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(scale)
