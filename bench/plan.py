"""The measurements and their order: the usual profile, which is part of the full one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Self

from bench import flowing, holding
from bench.figures import FLAT_OUT, USUAL_RATE_BYTES, Case
from bench.harness.bench import Measurement, Profile
from bench.impatient import impatient
from bench.loads import Client, Delivery, JavaLoadClass
from bench.overshoot import NO_ZONE_BYTES, burst
from bench.reaction import reaction
from bench.request_path import polls, quota_path, request_path
from bench.scope import scope
from bench.segments import segments
from bench.systems import (
    FENCE,
    FENCE_3,
    GOVERNOR,
    PEER_NAME,
    STOCK,
    System,
    make_system,
)
from testbed.loopback.callback_jar import find_callback_jar
from testbed.loopback.runtime import KafkaRuntime, ensure_kafka_runtime
from testbed.loopback.volumes import MIB, require_loop_volumes
from testbed.loopback.workspace import Workspace

THROTTLE, PAUSE, SCOPE, REACTION, OVERSHOOT = "throttle", "pause", "scope", "reaction", "overshoot"
REQUEST_PATH, OPEN, SEGMENTS, IMPATIENT = "request-path", "open", "segments", "impatient"
GROUPS = (THROTTLE, PAUSE, SCOPE, REACTION, OVERSHOOT, REQUEST_PATH, OPEN, IMPATIENT, SEGMENTS)
_THROTTLED = (FENCE,)
_PAUSED = (FENCE, FENCE_3, PEER_NAME)
# The fall-back without the fence: a case of each kind, for docs/throttling.md bounds it by formulas.
_LIMITS = (GOVERNOR,)
_FLOWING = (STOCK, GOVERNOR, FENCE)
_IMPATIENT = (STOCK, FENCE)
_LARGE_RATE_BYTES, _SMALL_RATE_BYTES = 20e6, 1e6
_CONNECTIONS_AT_ONCE = 20
_JAVA, _LIBRDKAFKA = Client.JAVA, Client.LIBRDKAFKA


class Brokers:
    """The common part of measurements: the runtime, and brokers that run as long as they are needed."""

    def __init__(self, report: Callable[[str], None]) -> None:
        require_loop_volumes()
        self.runtime: KafkaRuntime = ensure_kafka_runtime(report=report)
        self._stack = ExitStack()
        self._running: dict[str, System] = {}
        self._systems = ExitStack()

    def __enter__(self) -> Self:
        self.workspace = self._stack.enter_context(Workspace())
        self._stack.callback(self.stop)
        self.java = JavaLoadClass(self.runtime, self.workspace.path)
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def systems(self, names: tuple[str, ...], *, fresh: bool = False) -> list[System]:
        """Those systems, running; others are stopped, so that they don't disturb. Fresh ones are started
        again: their baselines know nothing of an earlier case's producers.
        """
        if fresh or set(names) != set(self._running):
            self.stop()
            with ExitStack() as stack:
                started = {name: stack.enter_context(make_system(name, self.runtime)) for name in names}
                self._systems, self._running = stack.pop_all(), started
        return [self._running[name] for name in names]

    def stop(self) -> None:
        """Stop those that run."""
        self._running = {}
        self._systems.close()


def measurements(profile: Profile) -> list[Measurement[Brokers]]:
    """All of a profile, in their order."""
    if profile is Profile.SMALL:
        return [
            _pause(_JAVA, 1, 5),
            _alone(REACTION, REACTION, partial(reaction, repeats=2)),
            _alone("polls", REQUEST_PATH, polls),
        ]
    every = [*_usual(), *(_full() if profile is Profile.FULL else ())]
    return sorted(every, key=lambda entry: GROUPS.index(entry.group))


def _usual() -> Iterator[Measurement[Brokers]]:
    for client in Client:
        yield _throttle(client, 20, besides=_LIMITS)
    yield _pause(_JAVA, 20, 5, besides=_LIMITS)
    yield _pause(_LIBRDKAFKA, 1, 5, besides=_LIMITS)
    yield _pause(_JAVA, 20, 30, besides=_LIMITS)
    yield _pause(_LIBRDKAFKA, 1, 5, offered_rate=_LARGE_RATE_BYTES, besides=_LIMITS)
    yield _scope()
    yield _alone(REACTION, REACTION, partial(reaction, repeats=40))
    for zone_mib in (NO_ZONE_BYTES // MIB, 128):
        yield _overshoot(zone_mib, fence=False)
    yield _alone("request-path", REQUEST_PATH, partial(request_path, forks=1, iterations=3))
    yield _alone("polls", REQUEST_PATH, polls)
    yield _alone("quota-path", REQUEST_PATH, partial(quota_path, forks=1, iterations=5))
    yield _open(_JAVA, 20)
    yield _impatient()


def _full() -> Iterator[Measurement[Brokers]]:
    usual = {entry.name for entry in _usual()}
    for client in Client:
        for offered_rate in (_SMALL_RATE_BYTES, FLAT_OUT):
            yield _throttle(client, 20, offered_rate)
            yield _pause(client, 20, 5, offered_rate=offered_rate)
        for connections in (1, 20, 100):
            more = [_throttle(client, connections), _throttle(client, connections, ramps=True)]
            more += [_pause(client, connections, seconds) for seconds in (5, 30, 120)]
            yield from (entry for entry in more if entry.name not in usual)
        for delivery in (Delivery.ACKS_0, Delivery.ACKS_1, Delivery.ACKS_ALL, Delivery.IDEMPOTENT):
            yield _pause(client, 20, 5, delivery)
    yield _pause(_JAVA, 20, 5, Delivery.TRANSACTIONAL)
    yield _overshoot(1, fence=True)
    yield _open(_LIBRDKAFKA, 1)
    yield _alone("segments-200000", SEGMENTS, lambda _runtime: [segments(200_000)])


def _measurement(name: str, group: str, run: Callable[[Brokers], Iterable[object]]) -> Measurement[Brokers]:
    def alone(brokers: Brokers) -> Iterable[object]:
        try:
            return run(brokers)
        except Exception:
            brokers.stop()  # its remaining load may disturb the next
            raise

    return Measurement(name, group, alone)


def _throttle(
    client: Client,
    connections: int,
    offered_rate: float = _LARGE_RATE_BYTES,
    *,
    ramps: bool = False,
    besides: tuple[str, ...] = (),
) -> Measurement[Brokers]:
    case, change = (
        Case("", client, connections, offered_rate=offered_rate),
        holding.ramp if ramps else holding.throttle,
    )
    return _measurement(
        _name("ramp" if ramps else THROTTLE, case),
        THROTTLE,
        lambda brokers: change(brokers.systems((*besides, *_THROTTLED), fresh=True), case, brokers.java),
    )


def _pause(
    client: Client,
    connections: int,
    seconds: int,
    delivery: Delivery = Delivery.USUAL,
    offered_rate: float = USUAL_RATE_BYTES,
    besides: tuple[str, ...] = (),
) -> Measurement[Brokers]:
    case = Case("", client, connections, delivery, offered_rate)

    def run(brokers: Brokers) -> list[object]:
        systems = brokers.systems((*besides, *_PAUSED))
        # At a higher rate, or with more clients, the systems would take the machine's time from each other.
        at_once = offered_rate == USUAL_RATE_BYTES and connections <= _CONNECTIONS_AT_ONCE
        together = [systems] if at_once else [[system] for system in systems]
        return [held for some in together for held in holding.pause(some, case, seconds, brokers.java)]

    return _measurement(f"{_name(PAUSE, case)}-{seconds}s", PAUSE, run)


def _alone(name: str, group: str, run: Callable[[KafkaRuntime], Iterable[object]]) -> Measurement[Brokers]:
    def without_brokers(brokers: Brokers) -> Iterable[object]:
        brokers.stop()
        return run(brokers.runtime)

    return _measurement(name, group, without_brokers)


def _scope() -> Measurement[Brokers]:
    def run(brokers: Brokers) -> list[object]:
        brokers.stop()
        return list(scope(brokers.runtime, brokers.java))

    return _measurement(SCOPE, SCOPE, run)


def _overshoot(zone_mib: int, *, fence: bool) -> Measurement[Brokers]:
    def run(runtime: KafkaRuntime) -> list[object]:
        zone_bytes, jar = zone_mib * MIB, find_callback_jar()
        return [burst(runtime, jar, zone_bytes=zone_bytes, window_seconds=11, fence=fence)]

    return _alone(f"overshoot-zone-{zone_mib}{'-fence' if fence else ''}", OVERSHOOT, run)


def _open(client: Client, connections: int) -> Measurement[Brokers]:
    case = Case("", client, connections, offered_rate=FLAT_OUT)
    one = Case("", client, 1, offered_rate=_SMALL_RATE_BYTES)

    def run(brokers: Brokers) -> list[object]:
        systems = brokers.systems(_FLOWING)
        rates = flowing.throughput(systems, case, rounds=5, java=brokers.java)
        return [*rates, *flowing.latency(systems, one, rounds=3, java=brokers.java)]

    return _measurement(_name(OPEN, case), OPEN, run)


def _impatient() -> Measurement[Brokers]:
    def run(brokers: Brokers) -> list[object]:
        java = JavaLoadClass(
            brokers.runtime, brokers.workspace.path, Path(__file__).with_name("ImpatientLoad.java")
        )
        return list(impatient(brokers.systems(_IMPATIENT), java))

    return _measurement(IMPATIENT, IMPATIENT, run)


def _name(scenario: str, case: Case) -> str:
    words = [scenario, case.client.value.lower(), str(case.connections)]
    if case.delivery is not Delivery.USUAL:
        words.append(case.delivery.value.replace("=", "-"))
    if case.offered_rate != USUAL_RATE_BYTES:
        words.append("flat-out" if case.offered_rate == FLAT_OUT else f"{case.offered_rate / 1e6:g}-mb")
    return "-".join(words)
