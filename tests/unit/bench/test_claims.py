"""The claims about the figures, and that each claim can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.claims import claims
from bench.figures import Case, Impatient, Paused, Reaction, RequestCost, SegmentsCost
from bench.harness.claims import Claim
from bench.loads import Client
from tests.unit.bench.measurements import BURST, FENCE, GOVERNOR, PEER, STEP, flat_out


def broken(*figures: object) -> list[str]:
    return [claim.name for claim in claims(figures) if claim.asserted and not claim.holds]


def about(text: str, *figures: object) -> list[Claim]:
    return [claim for claim in claims(figures) if text in claim.name]


@pytest.mark.parametrize(
    ("pauses", "statement"),
    [
        ((replace(FENCE, landed_late_bytes=10_000),), "with the fence no byte lands"),
        ((replace(GOVERNOR, landed_bytes=51_000_000),), "the governor alone leaks at most 1.5 times"),
        ((FENCE, replace(PEER, landed_bytes=900_000)), "with the fence a smaller share"),
        ((FENCE, replace(PEER, resumed_seconds=(0.5,))), "the slowest client is back sooner"),
        ((replace(FENCE, resumed_seconds=(None,)), PEER), "the slowest client is back sooner"),
    ],
)
def test_each_claim_about_pauses_can_fail(pauses: tuple[Paused, ...], statement: str):
    assert [text[: len(statement)] for text in broken(*pauses)] == [statement]


def test_a_peer_that_holds_nobody_has_nobody_to_bring_back():
    open_door = replace(PEER, landed_bytes=99_000_000, resumed_seconds=(0.1,))
    assert about("sooner", FENCE, open_door) == []
    assert broken(FENCE, open_door) == []


def test_a_pause_that_began_with_nothing_flowing_shows_nothing():
    for pause in (FENCE, GOVERNOR):
        still = replace(pause, rate_before=0.0, landed_bytes=0, landed_late_bytes=10_000)
        assert still.offered_ratio is None
        assert broken(still) == []
    still_muted = replace(PEER, rate_before=0.0, landed_bytes=0, landed_late_bytes=0)
    assert about("peer", FENCE, still_muted) == []


def test_pauses_of_different_cases_are_not_compared():
    elsewhere = replace(PEER, case=Case("peer", Client.JAVA, 20), landed_bytes=1)
    assert broken(FENCE, elsewhere) == []


def test_throughput_is_the_median_of_pairs():
    stock = flat_out("stock", 100, 200, 10)
    assert broken(stock, flat_out("governor", 90, 20, 50)) == []
    # The median of rates would be as good as stock's, that of pairs is not.
    assert len(broken(stock, flat_out("governor", 200, 100, 8))) == 1
    (aim,) = about("at least 0.99 of stock", stock, flat_out("fence", 95, 190, 9.5))
    assert not aim.holds  # 0.95: above what is asserted, below what is aimed at


def test_reactions_are_compared_in_the_median_and_aimed_at_by_the_worst():
    slow = Reaction("kquota", 3, (1.6, 1.6, 0.1), (1.0,)), Reaction("peer", 3, (1.5,), (1.0,))
    assert len(broken(*slow)) == 1
    assert len(broken(Reaction("kquota", 3, (0.51,), (1.0,)), slow[1])) == 1
    assert broken(Reaction("kquota", 3, (0.49,), (1.0,)), slow[1]) == []
    assert [claim.holds for claim in about("reaction: worst", *slow)] == [False]


# 50 MB/s * (0.5 + 5.5) s + 4 requests, and without the fence + 2 leaders * 2 MB * (15 + 2)
@pytest.mark.parametrize(("fence", "bound_bytes"), [(False, 372_000_000), (True, 304_000_000)])
def test_an_overshoot_beyond_the_bound_is_broken(*, fence: bool, bound_bytes: int):
    burst = replace(BURST, fence=fence, past_hard_bytes=bound_bytes)
    assert broken(burst) == []
    assert len(broken(replace(burst, past_hard_bytes=bound_bytes + 1))) == 1


def test_the_request_path_is_compared_with_as_many_clients():
    entries = [
        RequestCost("request path", "stock", "10 clients", 100.0, 1.0),
        RequestCost("request path", "kquota", "10 clients", 110.0, 1.0),
        RequestCost("request path", "stock", "1,000 clients", 100.0, 1.0),
        RequestCost("request path", "kquota", "1,000 clients", 301.0, 1.0),
        RequestCost("request path", "kquota without quotas", "1,000 clients", 900.0, 1.0),
    ]
    (text,) = broken(*entries)
    assert "at most 3 times stock" in text
    assert broken(*entries[:3]) == []


def test_a_throttle_of_nothing_is_not_rated():
    still = replace(STEP, baseline_rate=0.0, mean_ratio=None, settled_seconds=None)
    assert about("mean rate", still) == []


@pytest.mark.parametrize(
    ("seconds", "ratio", "holds"), [(600, 0.01, [True, True]), (601, 0.011, [False, False])]
)
def test_a_look_at_segments_has_ten_minutes_and_a_hundredth_of_a_core(
    seconds: float, ratio: float, holds: list[bool]
) -> None:
    found = claims([SegmentsCost(200_000, 800_000, seconds, ratio, 0.002, 12_000_000)])
    assert [claim.holds for claim in found] == holds


@pytest.mark.parametrize("state", ["THROTTLE", "PAUSE"])
def test_a_refusal_that_costs_more_than_a_request_breaks_the_claim(state: str):
    stock = Impatient("stock", "OPEN", 1000, 20_000.0, 0.0, 1.0)
    taken = replace(stock, system="fence")
    cheap = [replace(taken, state=one, answers_per_second=40_000.0) for one in ("THROTTLE", "PAUSE")]
    assert broken(stock, taken, *cheap) == []
    dear = [replace(one, processor_ratio=2.5) if one.state == state else one for one in cheap]
    assert len(broken(stock, taken, *dear)) == 1
    assert state in about("try again at once", stock, taken, *dear)[0].measured
