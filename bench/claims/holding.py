"""Claims about THROTTLE and PAUSE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import log
from statistics import median

from bench.bounds import POLL_SECONDS, THROTTLE_MUTE_SECONDS, leak_aim_bytes, pause_mute_seconds
from bench.claims.verdict import Verdict, aim, megabytes, where
from bench.results import Paused, Results, Throttled
from bench.systems import FENCE, FENCE_3, GOVERNOR, GOVERNOR_3, PEER_NAME

_GOVERNED, _FENCED = (GOVERNOR, GOVERNOR_3), (FENCE, FENCE_3)
HELD_RATIO = 0.5
"""A pause in which more than this share of the usual bytes landed held nobody."""
_NEAR = 0.2
# What lands on a busy machine, by what the law lets in on a test's clock.
_REAL_BROKER_RATIO = 1.5
_SMALLEST_AIMED_FACTOR = 0.3
_AIMED_SILENCE_SECONDS = 1.5
_AIMED_RESUME_MEDIAN_SECONDS, _AIMED_RESUME_SECONDS = 1.0, 1.5
_ALLOWED_SECONDS = 0.2
_MUTE_CAUSE = "a mute is longer than D by as much as the requests that began it were larger than expected"
_SMALLER_REQUESTS = "smaller requests, by a smaller batch.size or max.request.size in the client"


def holding_verdicts(results: Results) -> Iterator[Verdict]:
    """All of them."""
    yield from _asserted(results.paused)
    yield from _fence_aims([pause for pause in results.paused if pause.case.system in _FENCED])
    yield from _governor_aims([pause for pause in results.paused if pause.case.system in _GOVERNED])
    yield from _throttle_aims(results.throttled)


def _asserted(pauses: Iterable[Paused]) -> Iterator[Verdict]:
    # A pause that began with nothing flowing shows nothing.
    by_case = _by_case(pause for pause in pauses if pause.offered_ratio is not None)
    fenced = [pause for together in by_case for name, pause in together.items() if name in _FENCED]
    if fenced:
        late = max(pause.landed_late_bytes for pause in fenced)
        yield Verdict(
            "with the fence nothing lands after the first 0.5 s of a pause",
            f"at most {megabytes(late)} in {len(fenced)} pauses",
            late == 0,
            asserted=True,
        )
    governed = [pause for together in by_case for name, pause in together.items() if name in _GOVERNED]
    if governed:
        worst = max(governed, key=_leak_ratio)
        yield Verdict(
            f"the governor alone leaks at most {_REAL_BROKER_RATIO:g} times what docs/throttling.md says",
            f"at most {megabytes(worst.landed_bytes)} of {megabytes(leak_aim_bytes(worst))} "
            f"({where(worst)}), in {len(governed)} pauses",
            _leak_ratio(worst) <= _REAL_BROKER_RATIO,
            asserted=True,
        )
    yield from _against_the_peer(by_case)


def _against_the_peer(by_case: list[dict[str, Paused]]) -> Iterator[Verdict]:
    pairs = [
        (together[name], together[PEER_NAME])
        for together in by_case
        for name in _FENCED
        if {name, PEER_NAME} <= together.keys()
    ]
    if not pairs:
        return
    # Each by what its own producers sent before: they are not equally fast everywhere.
    less = sum((fence.offered_ratio or 0.0) < (peer.offered_ratio or 0.0) for fence, peer in pairs)
    yield Verdict(
        "a smaller share of what would land anyway lands with the fence than with the peer",
        f"in {less} of {len(pairs)} pauses",
        less == len(pairs),
        asserted=True,
    )
    held = [(fence, peer) for fence, peer in pairs if (peer.offered_ratio or 0.0) <= HELD_RATIO]
    if not held:
        return
    sooner = sum(_later(peer.slowest_resumed_seconds, fence.slowest_resumed_seconds) for fence, peer in held)
    yield Verdict(
        "the slowest client is back sooner with the fence than with the peer",
        f"in {sooner} of the {len(held)} pauses (of {len(pairs)}) in which the peer held producers",
        sooner == len(held),
        asserted=True,
    )


def _later(seconds: float | None, than_seconds: float | None) -> bool:
    """Whether the first is later; None is never."""
    return than_seconds is not None and (seconds is None or seconds > than_seconds)


def _fence_aims(pauses: list[Paused]) -> Iterator[Verdict]:
    cause = (
        "a held client is back at its next retry, for which it waits up to 1.2 s (retry.backoff.max.ms with "
        "its jitter); what is beyond that is the machine's"
    )
    idea = "a smaller retry.backoff.max.ms in the client; a broker can't wake who waits"
    back = [seconds for pause in pauses for seconds in pause.resumed_seconds]
    if back:
        middle = median(float("inf") if seconds is None else seconds for seconds in back)
        yield Verdict(
            f"fence: half of all clients are back within {_AIMED_RESUME_MEDIAN_SECONDS:g} s",
            f"median of {len(back)}: {middle:.2f} s",
            middle <= _AIMED_RESUME_MEDIAN_SECONDS,
            asserted=False,
            cause=cause,
            idea=idea,
        )
    yield from aim(
        f"fence: every client is back within {_AIMED_RESUME_SECONDS:g} s",
        pauses,
        lambda pause: pause.slowest_resumed_seconds,
        lambda _pause: _AIMED_RESUME_SECONDS,
        "s",
        cause,
        idea,
    )


def _governor_aims(pauses: list[Paused]) -> Iterator[Verdict]:
    yield from aim(
        "governor: every client is back within D + 0.2 s",
        pauses,
        lambda pause: pause.slowest_resumed_seconds,
        lambda pause: pause_mute_seconds(pause.seconds) + _ALLOWED_SECONDS,
        "s",
        _MUTE_CAUSE,
        "the fence, which needs no mutes; without it, smaller requests",
    )


def _leak_ratio(pause: Paused) -> float:
    return pause.landed_bytes / leak_aim_bytes(pause)


def _throttle_aims(changes: Iterable[Throttled]) -> Iterator[Verdict]:
    listed = list(changes)
    large = [change for change in listed if change.factor >= _SMALLEST_AIMED_FACTOR]
    yield from aim(
        f"THROTTLE down to {_SMALLEST_AIMED_FACTOR:g}: no client is silent for longer than "
        f"{_AIMED_SILENCE_SECONDS:g} s",
        large,
        lambda change: change.longest_silence_seconds,
        lambda _change: _AIMED_SILENCE_SECONDS,
        "s",
        "limits act by whole requests and whole windows: a connection that is over its limit waits for the "
        "mute that was fixed when it crossed it",
        _SMALLER_REQUESTS,
    )
    yield from aim(
        "THROTTLE: no client is silent for longer than D + poll",
        listed,
        lambda change: change.longest_silence_seconds,
        lambda _change: THROTTLE_MUTE_SECONDS + POLL_SECONDS,
        "s",
        f"{_MUTE_CAUSE}; and a rate below C·s / D can't be had with mutes of D",
        _SMALLER_REQUESTS,
    )
    for title, some in (
        (f"THROTTLE down to {_SMALLEST_AIMED_FACTOR:g}", large),
        ("THROTTLE below that", [change for change in listed if change.factor < _SMALLEST_AIMED_FACTOR]),
    ):
        rated = [(change, change.mean_ratio) for change in some if change.mean_ratio is not None]
        if rated:
            met = [ratio for _, ratio in rated if abs(ratio - 1) <= _NEAR]
            change, worst = max(rated, key=lambda entry: abs(log(max(entry[1], 1e-6))))
            yield Verdict(
                f"{title}: mean rate within {_NEAR:.0%} of the target",
                f"{len(met)} of {len(rated)}; worst {worst:.2f} ({where(change)})",
                len(met) == len(rated),
                asserted=False,
                cause="limits act by whole windows and whole requests: a small target is met in bursts and "
                "silences, and a rate below C·s / D can't be had with mutes of at most D",
                idea=f"{_SMALLER_REQUESTS}; or a longer D, for longer silences",
            )


def _by_case(pauses: Iterable[Paused]) -> list[dict[str, Paused]]:
    """The systems' pauses that ran at the same time."""
    together: dict[tuple[str, int, float], dict[str, Paused]] = {}
    for pause in pauses:
        key = (pause.case.whose, pause.case.connections, pause.seconds)
        together.setdefault(key, {})[pause.case.system] = pause
    return list(together.values())
