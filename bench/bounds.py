"""The promises, as formulas over measured figures. Pure. docs/sizing.md sizes limits by the same."""

from __future__ import annotations

from math import log

from bench.figures import Overshoot, Paused

POLL_SECONDS = 0.1
ARRIVAL_MIN_BYTES = 2**20
THROTTLE_MUTE_SECONDS = 5.0
PAUSE_MUTE_SECONDS = 10.0


def pause_mute_seconds(pause_seconds: float) -> float:
    """D at the end of a pause."""
    return min(max(pause_seconds / 2, 1.0), PAUSE_MUTE_SECONDS)


def leak_aim_bytes(pause: Paused) -> float:
    """The promises of docs/throttling.md.

    2 · max(F, C·s) · (2 + 2 · ln(min(t, 20) / 2) + max(0, t - 20) / 10) + F, with F of at least what came
    between two looks before the pause.
    """
    case, seconds = pause.case, pause.seconds
    surprise_bytes = max(ARRIVAL_MIN_BYTES, pause.rate_before * POLL_SECONDS)
    arrival_bytes = max(surprise_bytes, case.connections * case.client.largest_request_bytes)
    mutes = 2 + 2 * log(max(min(seconds, 20.0), 2.0) / 2) + max(0.0, seconds - 20) / 10
    return 2 * arrival_bytes * mutes + surprise_bytes


def leak_bound_bytes(arrival_bytes: float, pause_seconds: float, mute_max_seconds: float) -> float:
    """The leak of one broker in the formula of sizing: S · (15 + 2 · t/D)."""
    return arrival_bytes * (15 + 2 * pause_seconds / mute_max_seconds)


def held_bound_bytes(
    fill_rate: float, reaction_seconds: float, window_seconds: float, requests_bytes: float
) -> float:
    """How far past its hard limit a volume may go where nothing leaks: r · (τ + W/2) + requests."""
    return fill_rate * (reaction_seconds + window_seconds / 2) + requests_bytes


def overshoot_bound_bytes(seen: Overshoot) -> float:
    """How far past its hard limit a volume may go: r · (τ + W/2) + a · C · s + a · B · leak(t).

    With the fence nothing leaks.
    """
    requests_bytes = seen.share * seen.connections * seen.request_bytes
    held_bytes = held_bound_bytes(seen.fill_rate, seen.reaction_seconds, seen.window_seconds, requests_bytes)
    if seen.fence:
        return held_bytes
    arrival_bytes = max(seen.arrival_min_bytes, seen.connections / seen.leaders * seen.request_bytes)
    leak_bytes = leak_bound_bytes(arrival_bytes, seen.pause_seconds, seen.mute_max_seconds)
    return held_bytes + seen.share * seen.leaders * leak_bytes
