"""OPEN: throughput and latency of one system after the other, in alternating rounds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bench.figures import Case, Latency, Throughput
from bench.harness.processor import processor_seconds
from bench.lane import Lane
from bench.loads import JavaLoadClass
from bench.systems import System

_WARM_SECONDS = 1.0
_ROUND_SECONDS = 3.0
_GIGABYTE = 1e9


def throughput(systems: Sequence[System], case: Case, rounds: int, java: JavaLoadClass) -> list[Throughput]:
    """As fast as the broker takes it."""
    rates: dict[str, list[float]] = {system.name: [] for system in systems}
    costs: dict[str, list[float]] = {system.name: [] for system in systems}
    for number, system in enumerate(_in_turn(systems, 1 + rounds)):
        with Lane(system, replace(case, system=system.name), case.offered_rate, java) as lane:
            lane.wait_until_flowing()
            time.sleep(_WARM_SECONDS)
            start, used = time.monotonic(), processor_seconds(system.node.pid)
            time.sleep(_ROUND_SECONDS)
            end, used_then = time.monotonic(), processor_seconds(system.node.pid)
            rate = lane.landed().rate(start, end)
        if number < len(systems):
            continue  # the first round is the compilers'
        rates[system.name].append(rate)
        costs[system.name].append((used_then - used) / (rate * (end - start)) * _GIGABYTE)
    return [Throughput(replace(case, system=name), tuple(rates[name]), tuple(costs[name])) for name in rates]


def latency(systems: Sequence[System], case: Case, rounds: int, java: JavaLoadClass) -> list[Latency]:
    """From send to acknowledgement, at a rate that leaves the broker idle for most of the time.

    Raises:
        RuntimeError: nothing was acknowledged in a round.
    """
    medians: dict[str, list[float]] = {system.name: [] for system in systems}
    worst: dict[str, list[float]] = {system.name: [] for system in systems}
    for system in _in_turn(systems, rounds):
        with Lane(system, replace(case, system=system.name), case.offered_rate, java) as lane:
            lane.wait_until_flowing()
            time.sleep(_WARM_SECONDS + _ROUND_SECONDS)
        assert lane.results is not None
        if lane.results.median_milliseconds is None or lane.results.p99_milliseconds is None:
            raise RuntimeError(f"{lane.case}: nothing was acknowledged")
        medians[system.name].append(lane.results.median_milliseconds)
        worst[system.name].append(lane.results.p99_milliseconds)
    return [Latency(replace(case, system=name), tuple(medians[name]), tuple(worst[name])) for name in medians]


def _in_turn(systems: Sequence[System], rounds: int) -> Iterator[System]:
    for number in range(rounds):
        # Every other round backwards: a drift of the machine affects all alike.
        yield from systems if number % 2 == 0 else reversed(systems)
