"""What is measured, in which order: the quick profile and the full one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from bench import flowing, holding
from bench.loads import Client, Delivery, JavaLoadClass
from bench.overshoot import NO_ZONE_BYTES, burst
from bench.reaction import reaction
from bench.request_path import polls, quota_path, request_path
from bench.results import FLAT_OUT, USUAL_RATE_BYTES, Case, Results
from bench.systems import (
    FENCE,
    FENCE_3,
    GOVERNOR,
    GOVERNOR_3,
    PEER_NAME,
    STOCK,
    HoldableSystem,
    System,
    holdable,
    make_system,
)
from testbed.loopback.callback_jar import find_callback_jar
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB
from testbed.loopback.workspace import Workspace


class Scenario(StrEnum):
    """What can be run alone."""

    THROTTLE = "throttle"
    PAUSE = "pause"
    REACTION = "reaction"
    OVERSHOOT = "overshoot"
    REQUEST_PATH = "request-path"
    OPEN = "open"


_THROTTLED = (GOVERNOR, GOVERNOR_3)
_PAUSED = (GOVERNOR, GOVERNOR_3, FENCE, FENCE_3, PEER_NAME)
_FLOWING = (STOCK, GOVERNOR, FENCE)
_LARGE_RATE_BYTES = 20e6
_CONNECTIONS_AT_ONCE = 20
_SMALL_RATE_BYTES = 1e6


@dataclass(frozen=True, slots=True)
class Measurement:
    """One of them; its results are saved under its name."""

    name: str
    scenario: Scenario
    run: Callable[[Bench], Results]


class Bench:
    """What measurements share: the runtime, and brokers that go on running as long as they are wanted."""

    def __init__(self, runtime: KafkaRuntime) -> None:
        self.runtime = runtime
        self._stack = ExitStack()
        self._running: dict[str, System] = {}
        self._systems = ExitStack()

    def __enter__(self) -> Self:
        workspace = self._stack.enter_context(Workspace())
        self._stack.callback(self.stop_systems)
        self.java = JavaLoadClass(self.runtime, workspace.path)
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def systems(self, names: tuple[str, ...]) -> list[System]:
        """Those systems, running; others are stopped, so that they don't disturb."""
        if set(names) != set(self._running):
            self.stop_systems()
            with ExitStack() as stack:
                started = {name: stack.enter_context(make_system(name, self.runtime)) for name in names}
                self._systems, self._running = stack.pop_all(), started
        return [self._running[name] for name in names]

    def holdable_systems(self, names: tuple[str, ...]) -> list[HoldableSystem]:
        """The same, of those that can be told to hold producers."""
        return [holdable(system) for system in self.systems(names)]

    def fresh_systems(self, names: tuple[str, ...]) -> list[HoldableSystem]:
        """These, started anew: their baselines know nothing of an earlier case's producers."""
        self.stop_systems()
        return self.holdable_systems(names)

    def stop_systems(self) -> None:
        """Stop those that run."""
        self._running = {}
        self._systems.close()


def measurements(*, full: bool) -> list[Measurement]:
    """All of a profile. The quick one is part of the full one."""
    every = [*_quick(), *(_full() if full else ())]
    order = list(Scenario)
    return sorted(every, key=lambda entry: order.index(entry.scenario))


def _quick() -> Iterator[Measurement]:
    for client in Client:
        yield _throttle(client, 20)
    yield _pause(Client.JAVA, 20, 5)
    yield _pause(Client.LIBRDKAFKA, 1, 5)
    yield _pause(Client.JAVA, 20, 30)
    yield _pause(Client.LIBRDKAFKA, 1, 5, offered_rate=_LARGE_RATE_BYTES)
    yield _reaction()
    for zone_mib in (NO_ZONE_BYTES // MIB, 128):
        yield _overshoot(zone_mib, 11)
    yield _request_path()
    yield _polls()
    yield _quota_path()
    yield _open(Client.JAVA, 20)


def _full() -> Iterator[Measurement]:
    for client in Client:
        for offered_rate in (_SMALL_RATE_BYTES, FLAT_OUT):
            yield _throttle(client, 20, offered_rate)
            yield _pause(client, 20, 5, offered_rate=offered_rate)
        for connections in (1, 20, 100):
            if connections != 20:
                yield _throttle(client, connections)
            yield _ramp(client, connections)
            for seconds in (5, 30, 120):
                if (client, connections, seconds) not in {
                    (Client.JAVA, 20, 5),
                    (Client.LIBRDKAFKA, 1, 5),
                    (Client.JAVA, 20, 30),
                }:
                    yield _pause(client, connections, seconds)
        for delivery in (Delivery.ACKS_0, Delivery.ACKS_1, Delivery.ACKS_ALL, Delivery.IDEMPOTENT):
            yield _pause(client, 20, 5, delivery)
    yield _pause(Client.JAVA, 20, 5, Delivery.TRANSACTIONAL)
    for zone_mib, window_seconds, fence in ((1, 3, False), (32, 11, False), (384, 11, False), (1, 11, True)):
        yield _overshoot(zone_mib, window_seconds, fence=fence)
    yield _open(Client.LIBRDKAFKA, 1)


def _throttle(client: Client, connections: int, offered_rate: float = _LARGE_RATE_BYTES) -> Measurement:
    case = Case("", client, connections, offered_rate=offered_rate)

    def run(bench: Bench) -> Results:
        steps = holding.throttle(bench.fresh_systems(_THROTTLED), case, bench.java)
        return Results(throttled=tuple(steps))

    return Measurement(_name("throttle", case), Scenario.THROTTLE, run)


def _ramp(client: Client, connections: int) -> Measurement:
    case = Case("", client, connections, offered_rate=_LARGE_RATE_BYTES)

    def run(bench: Bench) -> Results:
        return Results(throttled=tuple(holding.ramp(bench.fresh_systems(_THROTTLED), case, bench.java)))

    return Measurement(_name("ramp", case), Scenario.THROTTLE, run)


def _pause(
    client: Client,
    connections: int,
    seconds: int,
    delivery: Delivery = Delivery.USUAL,
    offered_rate: float = USUAL_RATE_BYTES,
) -> Measurement:
    case = Case("", client, connections, delivery, offered_rate)

    def run(bench: Bench) -> Results:
        systems = bench.holdable_systems(_PAUSED)
        # At a higher rate, or with more clients, the systems would take the machine's time from each other.
        at_once = offered_rate == USUAL_RATE_BYTES and connections <= _CONNECTIONS_AT_ONCE
        together = [systems] if at_once else [[system] for system in systems]
        paused = [held for some in together for held in holding.pause(some, case, seconds, bench.java)]
        return Results(paused=tuple(paused))

    return Measurement(f"{_name('pause', case)}-{seconds}s", Scenario.PAUSE, run)


def _reaction() -> Measurement:
    def run(bench: Bench) -> Results:
        bench.stop_systems()
        return reaction(bench.runtime, repeats=20)

    return Measurement("reaction", Scenario.REACTION, run)


def _overshoot(zone_mib: int, window_seconds: int, *, fence: bool = False) -> Measurement:
    def run(bench: Bench) -> Results:
        bench.stop_systems()
        seen = burst(
            bench.runtime,
            find_callback_jar(),
            zone_bytes=zone_mib * MIB,
            window_seconds=window_seconds,
            fence=fence,
        )
        return Results(overshoots=(seen,))

    suffix = "-fence" if fence else ""
    return Measurement(f"overshoot-zone-{zone_mib}-window-{window_seconds}{suffix}", Scenario.OVERSHOOT, run)


def _request_path() -> Measurement:
    def run(bench: Bench) -> Results:
        bench.stop_systems()
        return request_path(bench.runtime, forks=1, iterations=3)

    return Measurement("request-path", Scenario.REQUEST_PATH, run)


def _quota_path() -> Measurement:
    def run(bench: Bench) -> Results:
        bench.stop_systems()
        return quota_path(bench.runtime, forks=1, iterations=5)

    return Measurement("quota-path", Scenario.REQUEST_PATH, run)


def _polls() -> Measurement:
    def run(bench: Bench) -> Results:
        bench.stop_systems()
        return polls(bench.runtime)

    return Measurement("polls", Scenario.REQUEST_PATH, run)


def _open(client: Client, connections: int) -> Measurement:
    case = Case("", client, connections, offered_rate=FLAT_OUT)

    def run(bench: Bench) -> Results:
        systems = bench.systems(_FLOWING)
        rates = flowing.throughput(systems, case, rounds=5, java=bench.java)
        one = Case("", client, 1, offered_rate=_SMALL_RATE_BYTES)
        times = flowing.latency(systems, one, rounds=3, java=bench.java)
        return Results(throughput=tuple(rates), latency=tuple(times))

    return Measurement(_name("open", case), Scenario.OPEN, run)


def _name(scenario: str, case: Case) -> str:
    words = [scenario, case.client.value.lower(), str(case.connections)]
    if case.delivery is not Delivery.USUAL:
        words.append(case.delivery.value.replace("=", "-"))
    if case.offered_rate != USUAL_RATE_BYTES:
        words.append("flat-out" if case.offered_rate == FLAT_OUT else f"{case.offered_rate / 1e6:g}-mb")
    return "-".join(words)
