"""THROTTLE and PAUSE: how producers are held, and when they are back.

The systems that are given run at the same time: the machine's noise is the same for all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from bench.figures import Case, Paused, Throttled
from bench.lane import Lane
from bench.loads import JavaLoadClass
from bench.systems import System

WINDOW_SECONDS = 11.0
STEPS = ((Fraction(1), Fraction(1, 2)), (Fraction(1), Fraction(3, 10)), (Fraction(3, 10), Fraction(1, 20)))
RAMP = (Fraction(1), Fraction(1, 10))
RAMP_SECONDS = 20.0

# The plug-in's baseline is an average over ten seconds: it remembers what producers sent to catch up.
_WARM_SECONDS, _MOST_WARM_SECONDS, _AGREED_RATIO = 20.0, 90.0, 0.03
_BASELINE_SECONDS = 10.0
_STEP_SECONDS = 16.0
_LONG_STEP_SECONDS = 120.0
_LONG_ROUND_SECONDS = 5.0
_RAMP_TICK_SECONDS = 0.25  # as often as an agent that looks at its disks five times a second might decide
_BEFORE_PAUSE_SECONDS = 6.0
_RATE_BEFORE_SECONDS = 4.0
_LATE_SECONDS = 0.5


def throttle(systems: Sequence[System], case: Case, java: JavaLoadClass) -> list[Throttled]:
    """Steps of the throttle factor. The case's own system is left out of account."""
    results = []
    with _lanes(systems, case, java) as lanes:
        baselines: list[float] = []
        for factor_from, factor in STEPS:
            if factor_from == 1:
                baselines = _warm(lanes)
            started = _decide(lanes, factor)
            # Where a request of each connection takes this long, a mean over seconds is of few requests.
            round_bytes = case.connections * case.client.largest_request_bytes
            is_long = round_bytes > _LONG_ROUND_SECONDS * float(factor) * max(baselines)
            step_seconds = _LONG_STEP_SECONDS if is_long else _STEP_SECONDS
            mean_seconds = step_seconds if is_long else WINDOW_SECONDS
            time.sleep(step_seconds)
            for lane, baseline, start in zip(lanes, baselines, started, strict=True):
                end, target, landed = start + step_seconds, float(factor) * baseline, lane.landed()
                step = Throttled(
                    lane.case,
                    float(factor_from),
                    float(factor),
                    baseline,
                    landed.settled_seconds(start, end, target),
                    landed.longest_silence_seconds(start, end),
                    landed.rate(end - mean_seconds, end) / target if target > 0 else None,
                    fairness=landed.fairness(end - mean_seconds, end),
                    measured_seconds=step_seconds,
                )
                results.append(step)
        _decide(lanes, Fraction(1))
    return results


def ramp(systems: Sequence[System], case: Case, java: JavaLoadClass) -> list[Throttled]:
    """A ramp of the throttle factor, as a disk that fills makes it."""
    start, end = RAMP
    with _lanes(systems, case, java) as lanes:
        baselines = _warm(lanes)
        began_at = time.monotonic()
        while (passed := time.monotonic() - began_at) < RAMP_SECONDS:
            _decide(lanes, start + (end - start) * Fraction(passed / RAMP_SECONDS).limit_denominator(10_000))
            time.sleep(_RAMP_TICK_SECONDS)
        ended_at = time.monotonic()
        results = []
        for lane, baseline in zip(lanes, baselines, strict=True):
            landed, wanted_bytes = lane.landed(), baseline * float(start + end) / 2 * (ended_at - began_at)
            silence_seconds = landed.longest_silence_seconds(began_at, ended_at)
            ratio = landed.bytes(began_at, ended_at) / wanted_bytes if wanted_bytes > 0 else None
            factors = float(start), float(end)
            results.append(
                Throttled(lane.case, *factors, baseline, None, silence_seconds, ratio, RAMP_SECONDS)
            )
        _decide(lanes, Fraction(1))
    return results


def pause(systems: Sequence[System], case: Case, seconds: float, java: JavaLoadClass) -> list[Paused]:
    """One pause, of systems whose producers are not held by an earlier one."""
    for system in systems:
        system.make_fresh()
    # Clients are watched for longer than the longest mute there is meant to be.
    watched_seconds = min(max(8.0, seconds / 2), 20.0)
    with _lanes(systems, case, java) as lanes:
        time.sleep(_BEFORE_PAUSE_SECONDS)
        paused_at = _decide(lanes, Fraction(0))
        time.sleep(seconds)
        released_at = _decide(lanes, Fraction(1))
        time.sleep(watched_seconds)
    return [
        _paused(lane, seconds, watched_seconds, start, end)
        for lane, start, end in zip(lanes, paused_at, released_at, strict=True)
    ]


def _warm(lanes: Sequence[Lane]) -> list[float]:
    """Let all produce until each plug-in's baseline is what its producers send; the rate of each."""
    _decide(lanes, Fraction(1))
    began_at = time.monotonic()
    while True:
        time.sleep(1)
        now = time.monotonic()
        rates = [lane.landed().rate(now - _BASELINE_SECONDS, now) for lane in lanes]
        known = [lane.system.baseline_rate() for lane in lanes]
        differences = [abs(of - rate) for of, rate in zip(known, rates, strict=True)]
        agreed = all(by <= _AGREED_RATIO * rate for by, rate in zip(differences, rates, strict=True))
        if now - began_at >= (_WARM_SECONDS if agreed else _MOST_WARM_SECONDS):
            return rates


def _decide(lanes: Sequence[Lane], factor: Fraction) -> list[float]:
    """Order a throttle factor; when, by lane (CLOCK_MONOTONIC, in seconds)."""
    ordered_at = []
    for lane in lanes:
        ordered_at.append(time.monotonic())
        lane.system.decide(factor)
    return ordered_at


def _paused(lane: Lane, seconds: float, watched_seconds: float, start: float, end: float) -> Paused:
    landed = lane.landed()
    rates = landed.rates_by_connection(start - _RATE_BEFORE_SECONDS, start)
    # A broker on a busy machine may not answer for as long as a fifth of a short pause takes.
    landed_until = [landed.until(start + part * (end - start) / 5) for part in range(6)]
    assert lane.results is not None
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
        lane.results.failed_records,
        tuple(lane.results.errors),
    )


@contextmanager
def _lanes(systems: Sequence[System], case: Case, java: JavaLoadClass) -> Iterator[list[Lane]]:
    with ExitStack() as stack:
        lanes = [
            stack.enter_context(Lane(system, replace(case, system=system.name), case.offered_rate, java))
            for system in systems
        ]
        for lane in lanes:
            lane.wait_until_flowing()
        yield lanes
