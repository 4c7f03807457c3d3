"""THROTTLE and PAUSE: how producers are held, and when they are back.

The systems that are given run at the same time: the machine's noise is the same for all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from bench.figures import Case, Paused, Throttled
from bench.lane import Lane
from bench.loads import JavaLoadClass
from bench.systems import HoldableSystem

WINDOW_SECONDS = 11.0
STEPS = ((Fraction(1), Fraction(1, 2)), (Fraction(1), Fraction(3, 10)), (Fraction(3, 10), Fraction(1, 20)))
RAMP = (Fraction(1), Fraction(1, 10))
RAMP_SECONDS = 20.0

_WARM_SECONDS = 20.0  # a baseline is an average over ten seconds, and producers take seconds to warm up
_STEP_SECONDS = 16.0
_RAMP_TICK_SECONDS = 0.25  # as often as an agent that looks at its disks five times a second might decide
_BEFORE_PAUSE_SECONDS = 6.0
_RATE_BEFORE_SECONDS = 4.0
_LATE_SECONDS = 0.5

_Lane = Lane[HoldableSystem]


@dataclass(frozen=True, slots=True)
class _Change:
    """One lane's order to change the factor."""

    lane: _Lane
    baseline_rate: float
    started_at: float


def throttle(systems: Sequence[HoldableSystem], case: Case, java: JavaLoadClass) -> list[Throttled]:
    """Steps of the throttle factor. The case's own system is left out of account."""
    results = []
    with _lanes(systems, case, java) as lanes:
        baselines: dict[str, float] = {}
        for factor_from, factor in STEPS:
            if factor_from == 1:
                baselines = _warm(lanes)
            started = {lane.system.name: _decide(lane, factor) for lane in lanes}
            time.sleep(_STEP_SECONDS)
            for lane in lanes:
                name = lane.system.name
                results.append(_stepped(_Change(lane, baselines[name], started[name]), factor_from, factor))
        _release(lanes)
    return results


def ramp(systems: Sequence[HoldableSystem], case: Case, java: JavaLoadClass) -> list[Throttled]:
    """A ramp of the throttle factor, as a disk that fills makes it."""
    start, end = RAMP
    with _lanes(systems, case, java) as lanes:
        baselines = _warm(lanes)
        began_at = time.monotonic()
        while (passed := time.monotonic() - began_at) < RAMP_SECONDS:
            factor = start + (end - start) * Fraction(passed / RAMP_SECONDS).limit_denominator(10_000)
            for lane in lanes:
                _decide(lane, factor)
            time.sleep(_RAMP_TICK_SECONDS)
        ended_at = time.monotonic()
        results = []
        for lane in lanes:
            landed, baseline = lane.landed(), baselines[lane.system.name]
            wanted_bytes = baseline * float(start + end) / 2 * (ended_at - began_at)
            results.append(
                Throttled(
                    lane.case,
                    float(start),
                    float(end),
                    baseline,
                    None,
                    landed.longest_silence_seconds(began_at, ended_at),
                    landed.bytes(began_at, ended_at) / wanted_bytes if wanted_bytes > 0 else None,
                    RAMP_SECONDS,
                )
            )
        _release(lanes)
    return results


def pause(systems: Sequence[HoldableSystem], case: Case, seconds: float, java: JavaLoadClass) -> list[Paused]:
    """One pause, of systems whose producers are not held by an earlier one."""
    for system in systems:
        system.make_fresh()
    watched_seconds = watched_after(seconds)
    with _lanes(systems, case, java) as lanes:
        time.sleep(_BEFORE_PAUSE_SECONDS)
        paused_at = {lane.system.name: _decide(lane, Fraction(0)) for lane in lanes}
        time.sleep(seconds)
        released_at = {lane.system.name: _decide(lane, Fraction(1)) for lane in lanes}
        time.sleep(watched_seconds)
    return [
        _paused(lane, seconds, watched_seconds, paused_at[lane.system.name], released_at[lane.system.name])
        for lane in lanes
    ]


def watched_after(pause_seconds: float) -> float:
    """How long clients are watched after a pause: longer than the longest mute there is meant to be."""
    return min(max(8.0, pause_seconds / 2), 20.0)


def _warm(lanes: Sequence[_Lane]) -> dict[str, float]:
    _release(lanes)
    time.sleep(_WARM_SECONDS)
    now = time.monotonic()
    return {lane.system.name: lane.landed().rate(now - 5, now) for lane in lanes}


def _decide(lane: _Lane, factor: Fraction) -> float:
    """Order a throttle factor; returns when (CLOCK_MONOTONIC, in seconds)."""
    ordered_at = time.monotonic()
    lane.system.decide(factor)
    return ordered_at


def _release(lanes: Sequence[_Lane]) -> None:
    for lane in lanes:
        _decide(lane, Fraction(1))


def _stepped(change: _Change, factor_from: Fraction, factor: Fraction) -> Throttled:
    start, end = change.started_at, change.started_at + _STEP_SECONDS
    target, landed = float(factor) * change.baseline_rate, change.lane.landed()
    return Throttled(
        change.lane.case,
        float(factor_from),
        float(factor),
        change.baseline_rate,
        landed.settled_seconds(start, end, target),
        landed.longest_silence_seconds(start, end),
        landed.rate(end - WINDOW_SECONDS, end) / target if target > 0 else None,
    )


def _paused(lane: _Lane, seconds: float, watched_seconds: float, start: float, end: float) -> Paused:
    landed = lane.landed()
    rates = landed.rates_by_connection(start - _RATE_BEFORE_SECONDS, start)
    # A broker on a busy machine may not answer for as long as a fifth of a short pause takes.
    landed_until = [landed.until(start + part * (end - start) / 5) for part in range(6)]
    assert lane.told is not None
    return Paused(
        lane.case,
        seconds,
        sum(rates),
        landed.bytes(start, end),
        landed.bytes(start + _LATE_SECONDS, end),
        landed.bytes_by_connection(start, end),
        tuple(until - before for before, until in pairwise(landed_until)),
        tuple(landed.resumed_seconds(end, end + watched_seconds, rates)),
        watched_seconds,
        lane.told.failed_records,
        lane.told.errors,
    )


@contextmanager
def _lanes(systems: Sequence[HoldableSystem], case: Case, java: JavaLoadClass) -> Iterator[list[_Lane]]:
    with ExitStack() as stack:
        lanes = [
            stack.enter_context(Lane(system, replace(case, system=system.name), case.offered_rate, java))
            for system in systems
        ]
        for lane in lanes:
            lane.wait_until_flowing()
        yield lanes
