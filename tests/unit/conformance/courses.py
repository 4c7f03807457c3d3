"""Courses and rows for the tests: what a trial would have seen."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

from conformance.course import Course, Sample
from conformance.figures import MIB, Crossed, Fill, Recovery, Survival

STEP_SECONDS = 0.1


def course(*parts: tuple[float, float], left_bytes: float = 1e9) -> Course:
    """One producer at these rates for these seconds, in turn, onto a volume with that much left."""
    steps = [rate * STEP_SECONDS for seconds, rate in parts for _ in range(round(seconds / STEP_SECONDS))]
    landed = [0.0, *accumulate(steps)]
    return Course(
        [
            Sample(number * STEP_SECONDS, max(0, int(left_bytes - total)), (int(total),), int(total / 4))
            for number, total in enumerate(landed)
        ]
    )


WELL = Survival(
    system="one",
    fill=Fill.REPLICATION,
    crossed_by=Crossed.PRODUCERS,
    brokers_lost=(),
    log_dirs_lost=0,
    acknowledged=1_000,
    lost=0,
    doubled=0,
    other_breaches={},
    given_up=0,
    held_seconds=0.2,
    hold_bound_seconds=25.0,
    overshoot_bytes=MIB,
    hard_left_bytes=32 * MIB,
    resumed_seconds=1.0,
    whole_seconds=0.5,
    recovery_bound_seconds=60.0,
    recovery=Recovery.ITSELF,
    collateral_share=1.0,
    consumer_share=1.0,
    rate_before=6e6,
    offered_rate=6e6,
)
ILL = replace(
    WELL,
    system="other",
    brokers_lost=(3,),
    log_dirs_lost=1,
    lost=None,
    doubled=None,
    held_seconds=None,
    overshoot_bytes=32 * MIB,
    resumed_seconds=None,
    whole_seconds=None,
    recovery_bound_seconds=15.2,
    recovery=Recovery.RESTART_LOST,
    collateral_share=0.4,
    consumer_share=None,
)
