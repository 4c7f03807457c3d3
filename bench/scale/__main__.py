"""`make scale`: measure an agent in large clusters, and simulate fleets over days."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

from bench.harness.bench import REPOSITORY, Bench, Measurement, Profile
from bench.harness.command import main
from bench.plots import draw_course
from bench.scale.agent_cost import measure_agent
from bench.scale.client_cost import measure_clients
from bench.scale.core_cost import measure_core
from bench.scale.figures import KINDS, Fleet, claims
from bench.scale.fleet import SCENARIOS, Scenario, simulate
from bench.scale.play_cost import measure_parallel, measure_rollout
from bench.scale.plays import model_seconds, task_core_seconds
from bench.scale.signature_cost import measure_signature
from kquota.guard.publication import regular_interval_seconds
from testbed.loopback.runtime import KafkaRuntime, ensure_kafka_runtime

_SIZES = (100, 1000)
_HOSTS = (3, 60)
_VOLUMES = 8
_INTERVAL_SECONDS, _STALENESS_SECONDS = 5.0, 60.0  # the defaults
_IMAGES = REPOSITORY / "docs" / "img"


def measurements(profile: Profile) -> Iterator[Measurement[KafkaRuntime]]:
    """Yield them; a small run has one of each, briefly."""
    small = profile is Profile.SMALL
    # As often as agents report in a cluster of that size, and at the end more often than they ever do.
    clusters = [
        (size, regular_interval_seconds(size, _INTERVAL_SECONDS, _STALENESS_SECONDS)) for size in _SIZES
    ]
    clusters.append((_SIZES[-1], _INTERVAL_SECONDS))
    for size, interval_seconds in clusters[:1] if small else clusters:
        yield _agent(size, interval_seconds, seconds=5.0 if small else 60.0)
    if not small:
        yield _agent(*clusters[1], seconds=60.0, scoped=True)
        yield _agent(*clusters[1], seconds=60.0, signed=True)
    for size in (3,) if small else (3, *_SIZES):
        yield _by_itself("clients", str(size), partial(measure_clients, size))
    for size in _SIZES[:1] if small else _SIZES:
        yield _by_itself("core", str(size), partial(measure_core, size, _VOLUMES))
    if not small:
        largest = partial(measure_core, _SIZES[-1], _VOLUMES, scoped=True)
        yield _by_itself("core", f"{_SIZES[-1]}-topics", largest)
    yield _by_itself("core", "signatures", partial(measure_signature, _VOLUMES))
    if profile is Profile.FULL:
        yield Measurement(f"plays-{_HOSTS[0]}", "plays", lambda runtime: measure_rollout(runtime, _HOSTS[0]))
        yield Measurement(f"plays-{_HOSTS[1]}", "plays", lambda _runtime: measure_parallel(_HOSTS[1]))
    for scenario in SCENARIOS[:1] if small else SCENARIOS:
        yield _fleet(replace(scenario, days=1) if small else scenario, draws=not small)


def _agent(
    size: int, interval_seconds: float, *, seconds: float, scoped: bool = False, signed: bool = False
) -> Measurement[KafkaRuntime]:
    def run(runtime: KafkaRuntime) -> list[object]:
        measure = partial(measure_agent, runtime, size, _VOLUMES, scoped=scoped, signed=signed)
        return [measure(interval_seconds=interval_seconds, seconds=seconds)]

    suffix = "-topics" if scoped else "-signed" if signed else ""
    return Measurement(f"agent-{size}-every-{interval_seconds:g}s{suffix}", "agent", run)


def _by_itself(group: str, name: str, measure: Callable[[], object]) -> Measurement[KafkaRuntime]:
    return Measurement(f"{group}-{name}", group, lambda _runtime: [measure()])


def _fleet(scenario: Scenario, *, draws: bool) -> Measurement[KafkaRuntime]:
    return Measurement(f"fleet-{scenario.name}", "fleet", lambda _runtime: _fleets(scenario, draws=draws))


def _fleets(scenario: Scenario, *, draws: bool) -> list[Fleet]:
    protected, free = (simulate(scenario, protected=protected) for protected in (True, False))
    if draws:
        draw_course(protected, _IMAGES / f"scale-{scenario.name}.svg")
    return [protected.fleet(), free.fleet()]


def _open(report: Callable[[str], None]) -> AbstractContextManager[KafkaRuntime]:
    return nullcontext(ensure_kafka_runtime(report=report))


BENCH = Bench(
    command="make scale",
    page=REPOSITORY / "docs" / "scale.md",
    results=REPOSITORY / "bench" / "scale" / "results.jsonl",
    kinds=KINDS,
    open=_open,
    versions=lambda runtime: [f"Kafka {runtime.version}"],
    measurements=measurements,
    template="scale/page.md.j2",
    claims=claims,
    functions={"model_seconds": model_seconds, "task_core_seconds": task_core_seconds},
)

if __name__ == "__main__":
    main(BENCH)
