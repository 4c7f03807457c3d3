"""Waits until the decision of an agent that is to be stopped outlasts the stop."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from kquota.cli.local_state import lease_seconds_left, read_decision
from kquota.host.boot_clock import BootClock
from kquota.policy.decision import MAX_MAINTENANCE_LEASE
from kquota.policy.timestamps import format_utc, parse_utc
from kquota.settings import Settings

PATIENCE_SECONDS = 15.0
_LOOK_SECONDS = 0.1
# The agent uses its own reading of the clocks.
_TOLERANCE_SECONDS = 1.0


def await_lease(settings: Settings, until: datetime) -> str | None:
    """Wait until this host's decision holds until then; return the problem if it does not.

    It waits for the longest lease at most, and the state of a hold ends with the hold.
    """
    covered_until = min(until, datetime.now(UTC) + MAX_MAINTENANCE_LEASE)
    clock = BootClock()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        decision, problem = read_decision(settings.decision_file)
        left_seconds = 0.0
        if decision is not None:
            left_seconds = lease_seconds_left(decision, clock.now())
            hold = decision["hold"]
            end = covered_until if hold is None else min(covered_until, parse_utc(hold["until"]))
            if (
                left_seconds > 0
                and left_seconds >= (end - datetime.now(UTC)).total_seconds() - _TOLERANCE_SECONDS
            ):
                return None
        if time.monotonic() >= deadline:
            short = f"the decision's lease runs for {left_seconds:.0f} s more: does the agent run?"
            return problem or short
        time.sleep(_LOOK_SECONDS)


def beyond_the_lease(until: datetime) -> str | None:
    """Describe the decision's fate if a stop is announced for longer than a lease can be."""
    longest_until = datetime.now(UTC) + MAX_MAINTENANCE_LEASE
    if until <= longest_until:
        return None
    return (
        "a lease runs for a day at most: a broker that runs without its agent after"
        f" {format_utc(longest_until)} applies its kquota.decision.lost.action"
    )
