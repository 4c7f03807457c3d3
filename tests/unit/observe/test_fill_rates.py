"""How fast volumes fill, from one observation after the other."""

from __future__ import annotations

from dataclasses import replace

from kquota.core.fill import MIN_SEEN_SECONDS
from kquota.observe.observation import Failure
from kquota.observe.volume_watch import FillRates
from tests.unit.daemon.cycles import volume

SEEN = replace(volume(50), capacity_bytes=10**9, sampled_at_monotonic=0.0)


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
            assert seen == {}
    assert {id_: round(rate) for id_, rate in seen.items()} == {SEEN.volume_id: 1000, "another": -10}


def test_a_volume_that_can_not_be_looked_at_tells_no_rate_and_goes_on_later():
    rates = FillRates()
    for at in range(60):
        rates.observe([replace(SEEN, consumed_bytes=1000 * at, sampled_at_monotonic=float(at))])
    hung = replace(SEEN, failures=(Failure(None, "no answer"),), sampled_at_monotonic=59.0)
    assert rates.observe([hung]) == {}
    back = rates.observe([replace(SEEN, consumed_bytes=70_000, sampled_at_monotonic=70.0)])
    assert round(back[SEEN.volume_id]) == 1000


def test_a_volume_that_is_gone_is_forgotten():
    rates = FillRates()
    for at in range(60):
        rates.observe([replace(SEEN, consumed_bytes=1000 * at, sampled_at_monotonic=float(at))])
    rates.observe([])
    assert rates.observe([replace(SEEN, consumed_bytes=70_000, sampled_at_monotonic=70.0)]) == {}


def test_volumes_without_figures_keep_no_rate_from_the_others():
    rates = FillRates()
    unknown = replace(SEEN, volume_id="1", capacity_bytes=None)
    failed = replace(SEEN, volume_id="2", failures=(Failure(None, "hung"),))
    undated = replace(SEEN, volume_id="3", sampled_at_monotonic=None)
    for at in range(int(MIN_SEEN_SECONDS) + 1):
        seen = rates.observe([unknown, failed, undated, replace(SEEN, sampled_at_monotonic=float(at))])
    assert seen.keys() == {SEEN.volume_id}
