"""Claims about reaction and overshoot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from bench.bounds import overshoot_bound_bytes
from bench.claims.verdict import Verdict, megabytes
from bench.results import Overshoot, Reaction, Results
from bench.systems import PEER_NAME

_AIMED_MEDIAN_SECONDS, _AIMED_WORST_SECONDS = 0.3, 1.0


def limit_verdicts(results: Results) -> Iterator[Verdict]:
    """All of them."""
    yield from _reactions(results.reactions)
    if results.overshoots:
        yield _overshoots(results.overshoots)


def _reactions(reactions: Sequence[Reaction]) -> Iterator[Verdict]:
    own = [entry for entry in reactions if entry.system != PEER_NAME]
    peers = [entry for entry in reactions if entry.system == PEER_NAME]
    for entry in own:
        middle, worst = median(entry.pause_seconds), max(entry.pause_seconds)
        for peer in peers:
            yield Verdict(
                "from the breach until every broker enforces, in the median, kquota is quicker than the peer",
                f"{middle:.2f} s against {median(peer.pause_seconds):.2f} s",
                middle < median(peer.pause_seconds),
                asserted=True,
            )
        cause = (
            "a look at the disks every 0.2 s, a record through the topic, and a look at the decision file "
            "every 0.1 s are 0.15 s in the mean and 0.3 s at most; the rest is the machine's"
        )
        idea = "to look more often (sample_interval_seconds), for more of a core"
        yield Verdict(
            f"reaction: median at most {_AIMED_MEDIAN_SECONDS:g} s",
            f"{middle:.2f} s in {len(entry.pause_seconds)} breaches",
            middle <= _AIMED_MEDIAN_SECONDS,
            asserted=False,
            cause=cause,
            idea=idea,
        )
        yield Verdict(
            f"reaction: worst at most {_AIMED_WORST_SECONDS:g} s",
            f"{worst:.2f} s in {len(entry.pause_seconds)} breaches",
            worst <= _AIMED_WORST_SECONDS,
            asserted=False,
            cause=cause,
            idea=idea,
        )


def _overshoots(overshoots: Sequence[Overshoot]) -> Verdict:
    within = [seen.past_hard_bytes <= overshoot_bound_bytes(seen) for seen in overshoots]
    worst = max(overshoots, key=lambda seen: seen.past_hard_bytes / overshoot_bound_bytes(seen))
    return Verdict(
        "overshoot is within r·(τ + W/2) + one request per connection + the leak",
        f"{sum(within)} of {len(within)}; nearest to it {megabytes(worst.past_hard_bytes)} "
        f"of {megabytes(overshoot_bound_bytes(worst))}",
        all(within),
        asserted=True,
    )
