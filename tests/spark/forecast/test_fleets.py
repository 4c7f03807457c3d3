"""The made-up fleets that forecasts are tuned and judged on."""

from __future__ import annotations

import numpy as np
import pytest

from bench.pipeline.fleets import segments, unseen
from kquota.core.expiry import DAY_MS, expiry_of

TICKS = 30 * segments.DAY


@pytest.mark.parametrize(
    ("keep_ms", "keep_bytes"), [(3 * DAY_MS, None), (None, 4e9), (7 * DAY_MS, 9e9), (DAY_MS // 4, None)]
)
@pytest.mark.parametrize("roll_bytes", [2e8, 1e15])
def test_looks_at_made_up_partitions_are_those_of_the_agents(
    keep_ms: int | None, keep_bytes: float | None, roll_bytes: float
) -> None:
    rate = np.random.default_rng(3).lognormal(0, 0.5, TICKS) * 1e7
    made = segments.partition(
        "t", rate, keep_ms=keep_ms, keep_bytes=keep_bytes, roll_ms=2 * DAY_MS, roll_bytes=roll_bytes
    )
    for tick in range(7, TICKS, 397):
        leaving, size = made.leaving(np.array([tick]))
        found = expiry_of(made.on_disk(tick), made.rules, segments.BROKER, tick * segments.TICK_MS)
        assert leaving[0] == pytest.approx(np.array(found.leaving_bytes), abs=1000)
        assert size[0] == pytest.approx(found.total_bytes, abs=1000)


def test_a_seed_gives_the_same_volumes_and_what_comes_is_not_known() -> None:
    one, same = (unseen.fleet(5, 1) for _ in range(2))
    assert [volume.family for volume in one] == list(unseen.FAMILIES)
    for left, right in zip(one, same, strict=True):
        assert (left.series.crest_bytes == right.series.crest_bytes).all()
        assert left.known.hours[-1] == left.cut
        assert np.isfinite(left.crests_to_come(30)).all()
        if left.known_looks is not None:
            total = left.known_looks.leaving_bytes.sum(axis=1) + left.known_looks.never_bytes
            assert total == pytest.approx(left.known_looks.topic_bytes.sum(axis=1), rel=1e-6)
