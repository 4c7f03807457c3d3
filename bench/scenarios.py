"""The three scenarios.

In each case of THROTTLE and PAUSE all systems run at the same time: the machine's noise is the same for all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from itertools import pairwise

import psutil

from bench.lane import Lane
from bench.loads import Client, JavaLoadClass
from bench.results import Case, Paused, Throttled, Throughput
from bench.systems import System

RATE_BYTES = 20e6
CONNECTIONS = (1, 20)
THROUGHPUT_CASES = ((Client.JAVA, 20), (Client.LIBRDKAFKA, 1))
PAUSES_SECONDS = (5, 30)
STEPS = ((Fraction(1), Fraction(1, 2)), (Fraction(1), Fraction(3, 10)), (Fraction(3, 10), Fraction(1, 20)))

_WARM_SECONDS = 11.0  # a baseline is an average over ten seconds
_STEP_SECONDS = 16.0
_WINDOW_SECONDS = 11.0
_BEFORE_PAUSE_SECONDS = 5.0
_AFTER_SECONDS = {5: 8.0, 30: 14.0}
_ROUNDS = 3
_ROUND_WARM_SECONDS = 1.0
_ROUND_SECONDS = 3.0
_GIGABYTE = 1e9


def throttle(
    systems: Sequence[System], client: Client, connections: int, java: JavaLoadClass
) -> list[Throttled]:
    """Steps of the throttle factor."""
    results = []
    with _lanes(systems, client, connections, java) as lanes:
        baselines: dict[str, float] = {}
        for factor_from, factor in STEPS:
            if factor_from == 1:
                _decide(lanes, Fraction(1))
                time.sleep(_WARM_SECONDS)
                now = time.monotonic()
                baselines = {lane.system.name: lane.landed().rate(now - 5, now) for lane in lanes}
            started = _decide(lanes, factor)
            time.sleep(_STEP_SECONDS)
            for lane in lanes:
                start, baseline = started[lane.system.name], baselines[lane.system.name]
                end, target, landed = start + _STEP_SECONDS, float(factor) * baseline, lane.landed()
                results.append(
                    Throttled(
                        Case(lane.system.name, client, connections),
                        float(factor_from),
                        float(factor),
                        baseline,
                        landed.settled_seconds(start, end, target),
                        landed.longest_silence_seconds(start, end),
                        landed.rate(end - _WINDOW_SECONDS, end) / target,
                    )
                )
        _decide(lanes, Fraction(1))
    return results


def pause(systems: Sequence[System], client: Client, connections: int, java: JavaLoadClass) -> list[Paused]:
    """A short pause and a long one."""
    times: list[tuple[int, dict[str, float], dict[str, float]]] = []
    with _lanes(systems, client, connections, java) as lanes:
        for seconds in PAUSES_SECONDS:
            time.sleep(_BEFORE_PAUSE_SECONDS)
            paused_at = _decide(lanes, Fraction(0))
            time.sleep(seconds)
            released_at = _decide(lanes, Fraction(1))
            time.sleep(_AFTER_SECONDS[seconds])
            times.append((seconds, paused_at, released_at))
    return [
        _paused(lane, Case(lane.system.name, client, connections), seconds, paused_at, released_at)
        for seconds, paused_at, released_at in times
        for lane in lanes
    ]


def _paused(
    lane: Lane, case: Case, seconds: int, paused: Mapping[str, float], released: Mapping[str, float]
) -> Paused:
    landed, start, end = lane.landed(), paused[case.system], released[case.system]
    watched_seconds = _AFTER_SECONDS[seconds]
    rates = landed.rates_by_connection(start - 4, start)
    landed_until = [landed.bytes(start, start + part * (end - start) / 5) for part in range(1, 6)]
    assert lane.told is not None
    return Paused(
        case,
        seconds,
        sum(rates),
        landed.bytes(start, end),
        landed.bytes(start + 0.5, end),
        landed.bytes_by_connection(start, end),
        tuple(until - before for before, until in pairwise([0, *landed_until])),
        tuple(landed.resumed_seconds(end, end + watched_seconds, rates)),
        watched_seconds,
        lane.told.failed_records,
        lane.told.errors,
    )


def throughput(
    systems: Sequence[System], client: Client, connections: int, java: JavaLoadClass
) -> list[Throughput]:
    """As fast as the broker takes it, one system after the other, in rounds."""
    rates: dict[str, list[float]] = {system.name: [] for system in systems}
    costs: dict[str, list[float]] = {system.name: [] for system in systems}
    for number in range(_ROUNDS):
        # Every other round backwards: what drifts on the machine hits nobody more than the others.
        for system in systems if number % 2 == 0 else reversed(systems):
            process = psutil.Process(system.node.pid)
            with Lane(system, client, connections, 0.0, java) as lane:
                lane.wait_until_flowing()
                time.sleep(_ROUND_WARM_SECONDS)
                start, used = time.monotonic(), process.cpu_times()
                time.sleep(_ROUND_SECONDS)
                end, used_then = time.monotonic(), process.cpu_times()
                rate = lane.landed().rate(start, end)
            processor_seconds = used_then.user + used_then.system - used.user - used.system
            rates[system.name].append(rate)
            costs[system.name].append(processor_seconds / (rate * (end - start)) * _GIGABYTE)
    return [
        Throughput(Case(name, client, connections), tuple(rates[name]), tuple(costs[name])) for name in rates
    ]


@contextmanager
def _lanes(
    systems: Sequence[System], client: Client, connections: int, java: JavaLoadClass
) -> Iterator[list[Lane]]:
    with ExitStack() as stack:
        lanes = [
            stack.enter_context(Lane(system, client, connections, RATE_BYTES, java)) for system in systems
        ]
        for lane in lanes:
            lane.wait_until_flowing()
        yield lanes


def _decide(lanes: Sequence[Lane], factor: Fraction) -> dict[str, float]:
    return {lane.system.name: lane.decide(factor) for lane in lanes}
