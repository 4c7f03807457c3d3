"""What is claimed of the figures: ratios within one run, asserted; and the aims beside them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import log
from statistics import median
from typing import TypeVar

from bench.results import Paused, Results, Throttled, Throughput
from bench.systems import FENCE, GOVERNOR, GOVERNOR_3, PEER_NAME, STOCK

_Measured = TypeVar("_Measured", Paused, Throttled)
_GOVERNED = (GOVERNOR, GOVERNOR_3)
_POLL_SECONDS = 0.1
_ARRIVAL_MIN_BYTES = 2**20
_THROTTLE_MUTE_SECONDS = 5.0
_PAUSE_MUTE_SECONDS = 10.0
HELD_RATIO = 0.5
"""A pause in which more than this share of the usual bytes landed held nobody."""
MIN_OPEN_RATIO, AIMED_OPEN_RATIO = 0.9, 0.99


@dataclass(frozen=True, slots=True)
class Verdict:
    """One statement and what was measured. `asserted`: `make bench` fails where it does not hold."""

    statement: str
    measured: str
    holds: bool
    asserted: bool
    cause: str = ""
    """Why an aim is missed, as far as it is understood."""


def judge(results: Results) -> list[Verdict]:
    """All statements that the results say something about; asserted ones first."""
    return [*_asserted(results), *_aims(results)]


def _asserted(results: Results) -> Iterator[Verdict]:
    by_case = _paused_by_case(results)
    fenced = [pauses[FENCE] for pauses in by_case if FENCE in pauses]
    if fenced:
        late = max(pause.landed_late_bytes for pause in fenced)
        yield Verdict(
            "with the fence nothing lands after the first 0.5 s of a pause",
            f"at most {megabytes(late)} in {len(fenced)} pauses",
            late == 0,
            asserted=True,
        )
    leaking = [pause for pauses in by_case for name, pause in pauses.items() if name in _GOVERNED]
    if leaking:
        least = min(pause.landed_late_bytes for pause in leaking)
        yield Verdict(
            "the governor alone leaks in the same pauses",
            f"at least {megabytes(least)} after the first 0.5 s",
            least > 0,
            asserted=True,
        )
    yield from _against_the_peer(by_case)
    for case, ratio in _open_ratios(results):
        yield Verdict(
            f"OPEN throughput of {case} is at least {MIN_OPEN_RATIO:g} of stock",
            f"{ratio:.3f}",
            ratio >= MIN_OPEN_RATIO,
            asserted=True,
        )


def _against_the_peer(by_case: list[dict[str, Paused]]) -> Iterator[Verdict]:
    pairs = [(pauses[FENCE], pauses[PEER_NAME]) for pauses in by_case if {FENCE, PEER_NAME} <= pauses.keys()]
    # A peer whose clients are not back from the pause before shows nothing in this one.
    pairs = [(fence, peer) for fence, peer in pairs if peer.offered_ratio is not None]
    if not pairs:
        return
    yield Verdict(
        "less lands with the fence than with the peer",
        f"in {sum(fence.landed_bytes < peer.landed_bytes for fence, peer in pairs)} of {len(pairs)} pauses",
        all(fence.landed_bytes < peer.landed_bytes for fence, peer in pairs),
        asserted=True,
    )
    held = [(fence, peer) for fence, peer in pairs if (peer.offered_ratio or 0.0) <= HELD_RATIO]
    if not held:
        return
    sooner = [_later(peer.slowest_resumed_seconds, fence.slowest_resumed_seconds) for fence, peer in held]
    yield Verdict(
        "the slowest client is back sooner with the fence than with the peer",
        f"in {sum(sooner)} of the {len(held)} pauses (of {len(pairs)}) in which the peer held producers",
        all(sooner),
        asserted=True,
    )


def _later(seconds: float | None, than_seconds: float | None) -> bool:
    """Whether the first is later; None is never."""
    return than_seconds is not None and (seconds is None or seconds > than_seconds)


def _aims(results: Results) -> Iterator[Verdict]:
    fenced = [pause for pause in results.paused if pause.case.system == FENCE]
    governed = [pause for pause in results.paused if pause.case.system in _GOVERNED]
    yield from _aim(
        "fence: every client is back within 1.5 s",
        fenced,
        lambda pause: pause.slowest_resumed_seconds,
        lambda _pause: 1.5,
        "s",
        "a held client is back at its next retry, for which it waits up to 1.2 s (retry.backoff.max.ms "
        "with its jitter); what is beyond that is the machine's",
    )
    yield from _aim(
        "governor: every client is back within D + poll",
        governed,
        lambda pause: pause.slowest_resumed_seconds,
        lambda pause: min(max(pause.seconds / 2, 1.0), _PAUSE_MUTE_SECONDS) + _POLL_SECONDS,
        "s",
        "a mute is longer than D by as much as the requests that began it were larger than expected",
    )
    yield from _aim(
        "governor: the leak of a pause is within max(S, C·s)·(2 + 2 ln(t/2)) + S",
        governed,
        lambda pause: pause.landed_bytes / 1e6,
        lambda pause: leak_bound_bytes(pause) / 1e6,
        "MB",
        "the formula has no term for what lands in the first second or two, while mutes are kept at 1 s "
        "(see the fifths)",
    )
    yield from _aim(
        "THROTTLE: no client is silent for longer than D + poll",
        results.throttled,
        lambda step: step.longest_silence_seconds,
        lambda _step: _THROTTLE_MUTE_SECONDS + _POLL_SECONDS,
        "s",
        "a mute is longer than D by as much as the requests that began it were larger than expected; "
        "and a rate below C·s / D can't be had with mutes of D",
    )
    rates = list(results.throttled)
    if rates:
        met = [step for step in rates if abs(step.mean_ratio - 1) <= 0.2]
        worst = max(rates, key=lambda step: abs(log(max(step.mean_ratio, 1e-6))))
        yield Verdict(
            "THROTTLE: mean rate of the last 11 s within 20 % of the target",
            f"{len(met)} of {len(rates)}; worst {worst.mean_ratio:.2f} ({worst.case}, {worst.step})",
            len(met) == len(rates),
            asserted=False,
            cause="limits act by whole windows and whole requests: a small target is met in bursts and "
            "silences, and a rate below C·s / D can't be had with mutes of at most D",
        )
    for case, ratio in _open_ratios(results):
        yield Verdict(
            f"OPEN throughput of {case} ÷ stock is at least {AIMED_OPEN_RATIO:g}",
            f"{ratio:.3f}",
            ratio >= AIMED_OPEN_RATIO,
            asserted=False,
            cause="see how far the rounds of one system lie apart: a difference within that is the machine's",
        )


def _aim(
    statement: str,
    cases: Iterable[_Measured],
    figure: Callable[[_Measured], float | None],
    bound: Callable[[_Measured], float],
    unit: str,
    cause: str,
) -> Iterator[Verdict]:
    measured = [(figure(case), bound(case), case) for case in cases]
    if not measured:
        return
    met = sum(value is not None and value <= limit for value, limit, _ in measured)
    value, limit, case = max(
        measured, key=lambda entry: float("inf") if entry[0] is None else entry[0] / entry[1]
    )
    worst = "not in the time watched" if value is None else f"{value:.1f} {unit}"
    yield Verdict(
        statement,
        f"{met} of {len(measured)}; worst {worst} where {limit:.1f} was aimed at ({case.case})",
        met == len(measured),
        asserted=False,
        cause=cause,
    )


def leak_bound_bytes(pause: Paused) -> float:
    """The leak that the governor's law promises, without what lands before its first mutes."""
    case = pause.case
    arrival_bytes = max(_ARRIVAL_MIN_BYTES, case.connections * case.client.largest_request_bytes)
    return arrival_bytes * (2 + 2 * log(pause.seconds / 2)) + _ARRIVAL_MIN_BYTES


def _open_ratios(results: Results) -> list[tuple[str, float]]:
    """By case, the median over the rounds of kquota ÷ stock."""
    stock = {_whose(entry): entry for entry in results.throughput if entry.case.system == STOCK}
    return [
        (str(entry.case), median(entry.rates) / median(stock[_whose(entry)].rates))
        for entry in results.throughput
        if entry.case.system != STOCK and _whose(entry) in stock
    ]


def _whose(entry: Throughput) -> tuple[str, int]:
    return entry.case.client.value, entry.case.connections


def _paused_by_case(results: Results) -> list[dict[str, Paused]]:
    """The systems' pauses that ran at the same time."""
    together: dict[tuple[str, int, float], dict[str, Paused]] = {}
    for pause in results.paused:
        key = (pause.case.client.value, pause.case.connections, pause.seconds)
        together.setdefault(key, {})[pause.case.system] = pause
    return list(together.values())


def megabytes(count: float) -> str:
    """For people: 10^6 bytes, never 0 for what is not nothing."""
    return f"{count / 1e6:.1f} MB" if count >= 100_000 or count == 0 else f"{count / 1e3:.0f} kB"
