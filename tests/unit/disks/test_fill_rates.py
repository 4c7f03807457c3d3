"""How fast volumes fill, from one observation after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from kquota.disks.fill_rates import Fill, FillRates
from kquota.disks.observation import Failure
from kquota.guard.own_record import own_record
from kquota.policy.fill import MIN_SEEN_SECONDS
from tests.unit.guard.cycles import SETTINGS, volume
from tests.unit.policy.situations import NOW

SEEN = replace(volume(50), capacity_bytes=10**9, sampled_at_monotonic=0.0)


def rounded(fills: Mapping[str, Fill]) -> dict[str, int]:
    """The present rates, where they are known."""
    rates = {volume_id: fill.rate.bytes_per_second for volume_id, fill in fills.items()}
    return {volume_id: round(rate) for volume_id, rate in rates.items() if rate is not None}


def test_each_volume_has_a_rate_of_its_own_once_it_was_seen_long_enough():
    rates = FillRates()
    other = replace(SEEN, volume_id="another")
    for at in range(int(MIN_SEEN_SECONDS) + 1):
        seen = rates.observe(
            [
                replace(SEEN, consumed_bytes=1000 * at, sampled_at_monotonic=float(at)),
                replace(other, consumed_bytes=10**6 - 10 * at, sampled_at_monotonic=float(at)),
            ]
        )
        if at < MIN_SEEN_SECONDS:
            assert rounded(seen) == {}
    assert rounded(seen) == {SEEN.volume_id: 1000, "another": -10}


def test_a_volume_that_can_not_be_looked_at_tells_no_rate_and_goes_on_later():
    rates = FillRates()
    for at in range(60):
        rates.observe([replace(SEEN, consumed_bytes=1000 * at, sampled_at_monotonic=float(at))])
    hung = replace(SEEN, failures=(Failure(None, "no answer"),), sampled_at_monotonic=59.0)
    assert rates.observe([hung]) == {}
    back = rates.observe([replace(SEEN, consumed_bytes=70_000, sampled_at_monotonic=70.0)])
    assert rounded(back) == {SEEN.volume_id: 1000}


def test_a_volume_that_is_gone_is_forgotten():
    rates = FillRates()
    for at in range(60):
        rates.observe([replace(SEEN, consumed_bytes=1000 * at, sampled_at_monotonic=float(at))])
    rates.observe([])
    assert rounded(rates.observe([replace(SEEN, consumed_bytes=70_000, sampled_at_monotonic=70.0)])) == {}


def test_volumes_without_figures_keep_no_rate_from_the_others():
    rates = FillRates()
    unknown = replace(SEEN, volume_id="1", capacity_bytes=None)
    failed = replace(SEEN, volume_id="2", failures=(Failure(None, "hung"),))
    undated = replace(SEEN, volume_id="3", sampled_at_monotonic=None)
    for at in range(int(MIN_SEEN_SECONDS) + 1):
        seen = rates.observe([unknown, failed, undated, replace(SEEN, sampled_at_monotonic=float(at))])
    assert seen.keys() == {SEEN.volume_id}


def fastest(rates: FillRates, consumed_bytes: int, at: float) -> int:
    (fill,) = rates.observe([replace(SEEN, consumed_bytes=consumed_bytes, sampled_at_monotonic=at)]).values()
    return fill.fastest.bytes_per_second


def test_the_fastest_minute_of_each_volume_is_known():
    rates = FillRates()
    assert [fastest(rates, used, at) for used, at in ((0, 0.0), (60_000, 30.0), (60_060, 200.0))] == [
        0,
        1000,
        1000,
    ]


def test_a_former_agents_fastest_minute_counts_on_for_its_volume_alone():
    records = own_record([SEEN], SETTINGS.limits, (), release_margin=Fraction(1, 10), snapshot_at=NOW).volumes
    reported = [records[0]._replace(fill_ceiling_bytes_per_second=777)]
    late, early = FillRates(), FillRates()
    early.recall(reported)
    assert fastest(early, 0, 0.0) == fastest(early, 0, 10.0) == 777
    assert fastest(late, 0, 0.0) == 0
    late.recall(reported)
    assert fastest(late, 0, 10.0) == 777
    rates = [FillRates(), FillRates()]
    for at in range(60):
        for one in rates:
            fastest(one, 1000 * at, float(at))
    rates[0].recall(reported)
    assert fastest(rates[0], 70_000, 70.0) == fastest(rates[1], 70_000, 70.0) == 1000, "its minute goes on"
    other = FillRates()
    other.recall([reported[0]._replace(volume_id="another"), records[0]])
    assert fastest(other, 0, 0.0) == 0
