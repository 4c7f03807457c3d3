"""`make bench`: run the scenarios, print and write what they show, fail where a claim does not hold."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench import scenarios
from bench.claims import judge
from bench.loads import Client, JavaLoadClass
from bench.page import Machine, page, tables
from bench.peer_jars import PEER
from bench.results import Results
from bench.systems import FENCE, GOVERNOR, GOVERNOR_3, PEER_NAME, STOCK, System, make_system
from kquota import __version__
from kquota.demo.runtime import ensure_kafka_runtime
from kquota.demo.volumes import require_loop_volumes
from kquota.demo.workspace import Workspace

_PAGE = Path(__file__).resolve().parents[1] / "docs" / "bench.md"


class Scenario(StrEnum):
    """What can be run alone."""

    THROTTLE = "throttle"
    PAUSE = "pause"
    THROUGHPUT = "throughput"


_SYSTEMS = {
    Scenario.THROTTLE: (GOVERNOR, GOVERNOR_3),
    Scenario.PAUSE: (GOVERNOR, GOVERNOR_3, FENCE, PEER_NAME),
    Scenario.THROUGHPUT: (STOCK, GOVERNOR, FENCE),
}
_CASES = [(client, connections) for client in Client for connections in scenarios.CONNECTIONS]


def bench(
    only: Annotated[
        Scenario | None, typer.Option(help="Run one scenario; docs/bench.md stays as it is.")
    ] = None,
    client: Annotated[Client | None, typer.Option(help="With these producers alone; likewise.")] = None,
    connections: Annotated[int | None, typer.Option(help="With so many connections alone; likewise.")] = None,
) -> None:
    """Measure how producers are held by kquota and by the peer plug-in, and what kquota costs in OPEN."""
    console = Console()
    require_loop_volumes()
    runtime = ensure_kafka_runtime(report=console.print)
    cases = [
        (of, count)
        for of, count in _CASES
        if (client is None or of is client) and (connections is None or count == connections)
    ]
    if not cases:
        raise typer.BadParameter(
            f"{connections} is none of {scenarios.CONNECTIONS}", param_hint="--connections"
        )
    started, load_before = time.monotonic(), os.getloadavg()
    chosen = list(Scenario) if only is None else [only]
    names = dict.fromkeys(name for scenario in chosen for name in _SYSTEMS[scenario])
    with ExitStack() as stack:
        workspace = stack.enter_context(Workspace())
        java = JavaLoadClass(runtime, workspace.path)
        console.print(f"starting {len(names)} brokers with Kafka {runtime.version}: {', '.join(names)}")
        systems = {name: stack.enter_context(make_system(name, runtime)) for name in names}
        results = Results()
        for scenario in chosen:
            for of, count in cases:
                if scenario is Scenario.THROUGHPUT and (of, count) not in scenarios.THROUGHPUT_CASES:
                    continue
                console.print(
                    f"{scenario.value}: {of.value}, {count} connection(s); load {os.getloadavg()[0]:.1f}"
                )
                taking_part = [systems[name] for name in _SYSTEMS[scenario]]
                results = _run(scenario, taking_part, of, count, java, results)
        machine = Machine(
            date=datetime.now(UTC).date().isoformat(),
            cores=os.cpu_count() or 0,
            load_before=load_before,
            load_after=os.getloadavg(),
            kafka_version=runtime.version,
            kquota_version=__version__,
            peer=PEER,
            minutes=(time.monotonic() - started) / 60,
        )
        verdicts = judge(results)
        for table in tables(results, verdicts):
            console.print(table)
        if only is None and cases == _CASES:
            _PAGE.write_text(page(results, verdicts, machine), encoding="utf-8")
            console.print(f"written: {_PAGE}")
    broken = [verdict for verdict in verdicts if verdict.asserted and not verdict.holds]
    for verdict in broken:
        console.print(f"[red]does not hold:[/] {verdict.statement}: {verdict.measured}")
    raise typer.Exit(1 if broken else 0)


def _run(
    scenario: Scenario,
    systems: list[System],
    client: Client,
    connections: int,
    java: JavaLoadClass,
    results: Results,
) -> Results:
    if scenario is Scenario.THROTTLE:
        throttled = scenarios.throttle(systems, client, connections, java)
        return replace(results, throttled=(*results.throttled, *throttled))
    if scenario is Scenario.PAUSE:
        paused = scenarios.pause(systems, client, connections, java)
        return replace(results, paused=(*results.paused, *paused))
    measured = scenarios.throughput(systems, client, connections, java)
    return replace(results, throughput=(*results.throughput, *measured))


if __name__ == "__main__":
    typer.run(bench)
