"""The claims about the figures: ratios within one run, asserted; and the aims. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf, log
from statistics import median

from bench.agents_claims import SMALLER_REQUESTS, agents, looks, reactions, scopes
from bench.bounds import MUTE_SECONDS, POLL_SECONDS, leak_aim_bytes, overshoot_bound_bytes
from bench.figures import (
    AgentCost,
    Impatient,
    Overshoot,
    Paused,
    Poll,
    Reaction,
    RequestCost,
    Scoped,
    SegmentsCost,
    Throttled,
    Throughput,
    megabytes,
)
from bench.harness.claims import Claim, each
from bench.harness.results import Figures, of
from bench.systems import FENCE, FENCE_3, GOVERNOR, PEER_NAME, STOCK

_FENCED = (FENCE, FENCE_3)
HELD_RATIO = 0.5
"""A pause in which more than this share of the usual bytes landed held no producer."""
_NEAR = 0.2
# The bytes that land on a busy machine, by those that the law lets in on a test's clock.
_REAL_BROKER_RATIO = 1.5
SMALLEST_AIMED_FACTOR = 0.3
_MUTE_CAUSE = "a mute is longer than D in proportion to what arrived at once before the limit followed it"
_RETRY = (
    "a held client is back at its next retry, after up to 1.2 s (retry.backoff.max.ms with its jitter); "
    "other work on the machine causes the rest"
)
_SOONER_RETRY = "set a smaller retry.backoff.max.ms in the client"


def claims(figures: Figures) -> Iterator[Claim]:
    """All subjects of the figures."""
    yield from _pauses(of(Paused, figures))
    yield from _against_the_peer(of(Paused, figures))
    changes = of(Throttled, figures)
    yield from _throttles([change for change in changes if change.case.system not in _FENCED])
    yield from _admissions([change for change in changes if change.case.system in _FENCED])
    yield from scopes(of(Scoped, figures))
    yield from reactions(of(Reaction, figures))
    yield from agents(of(AgentCost, figures))
    yield from looks(of(SegmentsCost, figures))
    yield from _overshoots(of(Overshoot, figures))
    yield from _open(of(Throughput, figures))
    yield from _impatient(of(Impatient, figures))
    yield from _requests(of(RequestCost, figures))
    yield from _costs(of(Poll, figures))


def _against_the_peer(pauses: list[Paused]) -> Iterator[Claim]:
    by_case: dict[object, dict[str, Paused]] = {}
    for pause in pauses:
        if pause.offered_ratio is not None:  # a pause that began with nothing flowing shows nothing
            case = pause.case.whose, pause.case.connections, pause.seconds
            by_case.setdefault(case, {})[pause.case.system] = pause
    # Each by what its own producers sent before: they are not equally fast everywhere.
    pairs = [
        (together[name], together[PEER_NAME])
        for together in by_case.values()
        for name in _FENCED
        if {name, PEER_NAME} <= together.keys()
    ]
    if pairs:
        less = sum((fence.offered_ratio or 0.0) < (peer.offered_ratio or 0.0) for fence, peer in pairs)
        yield Claim(
            "with the fence a smaller share of the offered bytes lands than with the peer",
            less, "==", len(pairs), f"in {less} of {len(pairs)} pauses", asserted=True,
        )  # fmt: skip
    held = [(fence, peer) for fence, peer in pairs if (peer.offered_ratio or 0.0) <= HELD_RATIO]
    if held:
        sooner = sum(_back(fence) < inf and _back(fence) < _back(peer) for fence, peer in held)
        yield Claim(
            "the slowest client is back sooner with the fence than with the peer",
            sooner, "==", len(held),
            f"in {sooner} of the {len(held)} pauses (of {len(pairs)}) in which the peer held producers",
            asserted=True,
        )  # fmt: skip


def _back(pause: Paused) -> float:
    return inf if pause.slowest_resumed_seconds is None else pause.slowest_resumed_seconds


def _pauses(pauses: list[Paused]) -> Iterator[Claim]:
    flowing = [pause for pause in pauses if pause.offered_ratio is not None]
    if late := [pause.landed_late_bytes for pause in flowing if pause.case.system in _FENCED]:
        yield Claim(
            "with the fence no byte lands after the first 0.5 s of a pause",
            max(late), "==", 0, f"at most {megabytes(max(late))} in {len(late)} pauses", asserted=True,
        )  # fmt: skip
    if leaks := [pause for pause in flowing if pause.case.system == GOVERNOR]:
        worst = max(leaks, key=lambda pause: pause.landed_bytes / leak_aim_bytes(pause))
        yield Claim(
            f"the governor alone leaks at most {_REAL_BROKER_RATIO:g} times the bytes of docs/throttling.md",
            worst.landed_bytes / leak_aim_bytes(worst), "<=", _REAL_BROKER_RATIO,
            f"at most {megabytes(worst.landed_bytes)} of {megabytes(leak_aim_bytes(worst))} ({worst}), "
            f"in {len(leaks)} pauses",
            asserted=True,
        )  # fmt: skip
    fenced = [pause for pause in pauses if pause.case.system in _FENCED]
    if back := [inf if at is None else at for pause in fenced for at in pause.resumed_seconds]:
        middle = median(back)
        shown = f"median of {len(back)}: {middle:.2f} s"
        yield Claim(
            "fence: half of all clients are back within 1 s", middle, "<=", 1, shown, _RETRY, _SOONER_RETRY
        )
    yield from each(
        "fence: every client is back within 1.5 s",
        fenced, lambda pause: pause.slowest_resumed_seconds, 1.5, "s", str, _RETRY, _SOONER_RETRY,
    )  # fmt: skip
    yield from each(
        "governor: every client is back within D + 0.2 s",
        [pause for pause in pauses if pause.case.system == GOVERNOR],
        lambda pause: pause.slowest_resumed_seconds,
        MUTE_SECONDS + 0.2,
        "s", str, _MUTE_CAUSE, "use the fence, which needs no mutes, or send smaller requests",
    )  # fmt: skip


def _throttles(changes: list[Throttled]) -> Iterator[Claim]:
    large = [change for change in changes if change.factor >= SMALLEST_AIMED_FACTOR]
    title = f"THROTTLE down to {SMALLEST_AIMED_FACTOR:g}"
    yield from each(
        f"{title}: no client is silent for longer than 1.5 s",
        large, lambda change: change.longest_silence_seconds, 1.5, "s", str,
        "limits act on whole requests and windows: a connection over its limit waits until its mute ends",
        SMALLER_REQUESTS,
    )  # fmt: skip
    yield from each(
        "THROTTLE: no client is silent for longer than D + poll",
        changes, lambda change: change.longest_silence_seconds, MUTE_SECONDS / 2 + POLL_SECONDS,
        "s", str,
        f"{_MUTE_CAUSE}; mutes of D can't hold a rate below C·s / D",
        SMALLER_REQUESTS,
    )  # fmt: skip
    small = [change for change in changes if change.factor < SMALLEST_AIMED_FACTOR]
    for name, some in ((title, large), ("THROTTLE below that", small)):
        rated = [(change, change.mean_ratio) for change in some if change.mean_ratio is not None]
        if rated:
            met = sum(abs(ratio - 1) <= _NEAR for _, ratio in rated)
            change, worst = max(rated, key=lambda entry: abs(log(max(entry[1], 1e-6))))
            yield Claim(
                f"{name}: mean rate within {_NEAR:.0%} of the target",
                met, "==", len(rated), f"{met} of {len(rated)}; worst {worst:.2f} ({change})",
                "limits act on whole windows and requests: producers meet a small target in bursts and "
                "silences, and mutes of at most D can't hold a rate below C·s / D",
                f"{SMALLER_REQUESTS}, or a longer D",
            )  # fmt: skip


def _admissions(changes: list[Throttled]) -> Iterator[Claim]:
    long = "the sizes of requests are known late, and a client comes when its own backoff ends"
    short = [change for change in changes if change.round_seconds <= 5]
    others = [change for change in changes if change.round_seconds > 5]
    for name, near, some in (
        ("where a round takes at most 5 s", 0.05, short),
        ("below that, over two minutes", 0.15, others),
    ):
        yield from each(
            f"THROTTLE by the fence, {name}: mean rate within {near:.0%} of the target",
            [change for change in some if change.mean_ratio is not None],
            lambda change: abs((change.mean_ratio or 0.0) - 1), near, "off", str, long, SMALLER_REQUESTS,
            digits=2,
        )  # fmt: skip
    yield from each(
        "THROTTLE by the fence: no client is silent for longer than max(2 s, two rounds)",
        changes, lambda change: change.longest_silence_seconds,
        lambda change: max(2.0, 2 * change.round_seconds), "s", str, long, _SOONER_RETRY,
    )  # fmt: skip
    yield from each(
        "THROTTLE by the fence: Jain's index is at least 0.95",
        [change for change in changes if change.fairness is not None],
        lambda change: 1 - (change.fairness or 0.0), 0.05, "from 1", str, long, SMALLER_REQUESTS, digits=2,
    )  # fmt: skip


def _overshoots(overshoots: list[Overshoot]) -> Iterator[Claim]:
    if not overshoots:
        return
    within = sum(seen.past_hard_bytes <= overshoot_bound_bytes(seen) for seen in overshoots)
    worst = max(overshoots, key=lambda seen: seen.past_hard_bytes / overshoot_bound_bytes(seen))
    nearest = f"{megabytes(worst.past_hard_bytes)} of {megabytes(overshoot_bound_bytes(worst))}"
    yield Claim(
        "overshoot is within r·(τ + W/2) + one request per connection + the leak",
        within, "==", len(overshoots), f"{within} of {len(overshoots)}; nearest to it {nearest}",
        asserted=True,
    )  # fmt: skip


def _open(entries: list[Throughput]) -> Iterator[Claim]:
    """By round, each system's rate ÷ that of the stock broker in the same round."""
    stock = {(e.case.whose, e.case.connections): e for e in entries if e.case.system == STOCK}
    ratios: dict[str, float] = {}
    for entry in entries:
        reference = stock.get((entry.case.whose, entry.case.connections))
        if entry is not reference and reference is not None:
            pairs = zip(entry.rates, reference.rates, strict=True)
            ratios[str(entry.case)] = median(own / other for own, other in pairs)
    shown = "; ".join(f"{ratio:.3f} {case}" for case, ratio in ratios.items())
    for bound, asserted in ((0.85, True), (0.99, False)) if ratios else ():
        yield Claim(
            f"OPEN: throughput, flat out, is at least {bound:g} of stock, in the median of pairs of rounds",
            min(ratios.values()), ">=", bound, shown if asserted else f"at least {min(ratios.values()):.3f}",
            "the machine causes a difference that is smaller than the spread of the pairs",
            "more pairs, with clients and brokers on machines of their own",
            asserted,
        )  # fmt: skip


def _impatient(entries: list[Impatient]) -> Iterator[Claim]:
    """By answer, the broker's processor time of a refusal ÷ that of a request which it takes."""
    cost = {(entry.system, entry.state): entry.processor_microseconds for entry in entries}
    refused = {state: used for (system, state), used in cost.items() if system == FENCE and state != "OPEN"}
    for whose, bound, asserted in ((FENCE, 1.2, True), (STOCK, 1.0, False)) if refused else ():
        taken = cost[whose, "OPEN"]
        worst = max(refused, key=lambda state: refused[state])
        yield Claim(
            "clients that try again at once: an answer in THROTTLE and PAUSE costs at most"
            f" {bound:g} times one in OPEN, of {whose}",
            refused[worst] / taken, "<=", bound,
            f"{refused[worst]:.1f} µs in {worst}, {taken:.1f} µs in OPEN",
            "Kafka meters each client that a callback names; a stock broker without quotas meters none",
            "set a retry.backoff.ms in the clients",
            asserted,
        )  # fmt: skip


def _requests(entries: list[RequestCost]) -> Iterator[Claim]:
    yield from _times_stock(
        [
            entry
            for entry in entries
            if entry.path == "request path" and not entry.who.endswith("without quotas")
        ],
        "request path: at most {:g} times stock with quotas",
        1.2,
        lambda entry: f"with {entry.what}",
        "on each request the plug-in reads the clock, because its decision is a lease, and counts the "
        "request; with many clients, no cache holds their counters",
        "keep all that belongs to a client in one place in memory",
    )
    yield from _times_stock(
        [entry for entry in entries if entry.path == "many quotas"],
        "many clients, groups and topics: at most {:g} times stock before and after an append",
        1.3,
        lambda entry: f"to {entry.what} {entry.who}",
        "the plug-in's own threads go through all clients, and displace from the caches what a request needs",
        "run these threads less often while no limit is near",
    )


def _times_stock(
    entries: list[RequestCost],
    name: str,
    aimed: float,
    whose: Callable[[RequestCost], str],
    cause: str,
    idea: str,
) -> Iterator[Claim]:
    stock: Mapping[str, float] = {entry.what: entry.nanoseconds for entry in entries if entry.who == STOCK}
    ratios = {
        whose(entry): entry.nanoseconds / stock[entry.what]
        for entry in entries
        if entry.who != STOCK and entry.what in stock
    }
    shown = ", ".join(f"{ratio:.2f} {of_whom}" for of_whom, ratio in ratios.items())
    for bound, asserted in ((3.0, True), (aimed, False)) if ratios else ():
        worst = max(ratios.values())
        measured = shown if asserted else f"at most {worst:.2f}"
        yield Claim(name.format(bound), worst, "<=", bound, measured, cause, idea, asserted)


def _costs(polls: list[Poll]) -> Iterator[Claim]:
    if polls:
        yield Claim(
            "a look of the governor with 10,000 tag sets takes at most 3 ms",
            max(poll.milliseconds for poll in polls), "<=", 3,
            ", ".join(f"{poll.milliseconds:.1f} ms in {poll.state}" for poll in polls),
            "it reads the rates of a thousand tag sets, and the broker's samples of each are memory "
            "that no cache holds. By default there are at most 2,000 (kquota.tag.sets.max)",
            "read fewer of them in a round if there are more than the default",
        )  # fmt: skip
