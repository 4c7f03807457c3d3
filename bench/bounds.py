"""The promises, as formulas over measured figures. Pure. docs/sizing.md sizes limits by the same."""

from __future__ import annotations

from math import sqrt

from bench.figures import Overshoot, Paused

POLL_SECONDS = 0.1
ARRIVAL_MIN_BYTES = 2**20
MUTE_SECONDS = 10.0
WINDOW_SECONDS = 11.0


def rounds_in_a_mute(window_seconds: float, mute_seconds: float = MUTE_SECONDS) -> float:
    """How often a connection lands a request in D at most, (1 + √(1 + 4 · D/W)) / 2."""
    return (1 + sqrt(1 + 4 * mute_seconds / window_seconds)) / 2


def leak_aim_bytes(pause: Paused) -> float:
    """The promise of docs/throttling.md: S · (3 + (W + rounds · t) / D), with S = max(F, C·s)."""
    arrival_bytes = max(ARRIVAL_MIN_BYTES, pause.case.connections * pause.case.client.largest_request_bytes)
    rounds = rounds_in_a_mute(WINDOW_SECONDS) * pause.seconds / MUTE_SECONDS
    return arrival_bytes * (3 + WINDOW_SECONDS / MUTE_SECONDS + rounds)


def leak_bound_bytes(
    arrival_bytes: float, pause_seconds: float, mute_max_seconds: float, window_seconds: float
) -> float:
    """The leak of one broker in the formula of sizing: S · (15 + max(2, rounds) · t/D)."""
    rounds = max(2.0, rounds_in_a_mute(window_seconds, mute_max_seconds))
    return arrival_bytes * (15 + rounds * pause_seconds / mute_max_seconds)


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
    leak_bytes = leak_bound_bytes(
        arrival_bytes, seen.pause_seconds, seen.mute_max_seconds, seen.window_seconds
    )
    return held_bytes + seen.share * seen.leaders * leak_bytes
