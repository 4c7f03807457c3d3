"""A relief plan on a history: what it frees, what it moves, and how long a copy exists twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.retention.relief_plan import InvalidPlan, Plan, plan_from_document
from kquota_pipeline.backtest.changes import Change, changed
from kquota_pipeline.backtest.closed_loop import simulate
from kquota_pipeline.backtest.flows import Floats, Observed
from kquota_pipeline.backtest.relief import (
    FreedShare,
    Relief,
    UnplayablePlan,
    check_version,
    relief_bytes,
    relief_of,
    target_of,
    topics_of,
)
from kquota_pipeline.backtest.scene import VolumePlace
from tests.spark.backtest.test_closed_loop import DEFAULTS, history, scene
from tests.unit.policy.golden import sample

HERE, THERE = VolumePlace(3, "/dev/sdb1"), VolumePlace(3, "/dev/sdc1")
ELSEWHERE = VolumePlace(4, "/dev/sdb1")


def document(name: str) -> dict[str, object]:
    """A plan as kquota relief writes it, before it is applied."""
    found = sample("relief", name)
    found |= {"state": "proposed", "steps": [{**step, "state": "proposed"} for step in found["steps"]]}
    assert isinstance(found, dict)
    return found


def plan(name: str) -> Plan:
    return plan_from_document(document(name))


def copying(seconds: float, share: float = 0.5) -> Relief:
    """A move of a share of `visits`, whose copy takes this long: 1000 bytes of 2000."""
    return Relief("C", (FreedShare("visits", share, HERE, THERE),), seconds, 2000 * share / seconds)


def elapsed(count: int, tick_seconds: float = 600.0) -> Floats:
    return np.arange(count) * tick_seconds


def test_a_shorter_retention_frees_its_share_on_all_volumes_after_the_checks() -> None:
    relief = Relief("C", (FreedShare("visits", 0.25),), 900.0, 1.0)
    held = {"visits": np.array([[400.0, 800.0]] * 4)}
    found = relief_bytes(relief, (HERE, THERE), held, elapsed(4))
    np.testing.assert_allclose(found, [[0, 0], [0, 0], [-100, -200], [-100, -200]])


def test_a_copy_grows_with_the_throttle_and_exists_twice_until_it_is_complete() -> None:
    held = {"visits": np.array([[2000.0, 0.0]] * 6)}
    found = relief_bytes(copying(2400.0), (HERE, THERE), held, elapsed(6))
    np.testing.assert_allclose(found[:, 1], [0, 250, 500, 750, 1000, 1000])
    np.testing.assert_allclose(found[:, 0], [0, 0, 0, 0, -1000, -1000])
    # A replica that is twice as large at the beginning of the history takes twice as long.
    larger = relief_bytes(
        copying(2400.0), (HERE, THERE), {"visits": np.array([[4000.0, 0.0]] * 9)}, elapsed(9)
    )
    assert (larger[:, 0] < 0).tolist() == [False] * 8 + [True]


@given(
    st.lists(st.floats(0, 1e9), min_size=3, max_size=12),
    st.floats(1, 1e5),
    st.lists(st.floats(0, 0.3), min_size=1, max_size=3),
)
def test_moves_neither_lose_bytes_nor_leave_a_gap(
    of_topic: list[float], seconds: float, shares: list[float]
) -> None:
    held = np.stack([np.array(of_topic), np.zeros(len(of_topic))], axis=1)
    steps = tuple(FreedShare("visits", share, HERE, THERE) for share in shares)
    relief = Relief("C", steps, seconds, max(1.0, sum(shares) * of_topic[0]) / seconds)
    found = relief_bytes(relief, (HERE, THERE), {"visits": held}, elapsed(len(of_topic)))
    total = found.sum(axis=1)
    assert (total >= -1e-3).all(), "a replica is somewhere at each moment"
    assert (held[:, 0] + found[:, 0] >= -1e-3).all()
    done = elapsed(len(of_topic)) >= seconds * 1.001
    np.testing.assert_allclose(total[done], 0, atol=1e-3)


def test_a_plan_moves_the_share_that_it_planned_to_the_volume_of_its_log_dir() -> None:
    found = plan("logdir-move")
    assert topics_of(found) == ("visits",)
    relief = relief_of(found, {"visits": 100e9}, {"/data/2/kafka": THERE})
    assert relief.steps == (FreedShare("visits", 0.25, HERE, THERE),)
    assert relief.seconds == 560
    assert relief.copy_bytes_per_second == pytest.approx(25e9 / 560)
    assert relief.brokers == {3}
    # More than the history has of the topic can't leave.
    assert relief_of(found, {"visits": 10e9}, {"/data/2/kafka": THERE}).steps[0].share == 1


def test_a_plan_moves_to_the_broker_that_takes_this_ones_place() -> None:
    found = plan("replica-move")
    assert target_of(found.steps[0], found) == 4
    relief = relief_of(found, {"visits": 50e9}, {4: ELSEWHERE})
    assert relief.steps == (FreedShare("visits", 0.5, HERE, ELSEWHERE),)
    assert relief.brokers == {3, 4}


def test_settings_free_what_they_planned_as_a_share_of_the_topic() -> None:
    found = plan("proposed")
    held = dict.fromkeys(topics_of(found), 1e12)
    relief = relief_of(found, held, {})
    freed = {step.target: step.frees_bytes / 1e12 for step in found.steps if step.target}
    assert {step.topic: step.share for step in relief.steps} == pytest.approx(freed)
    assert all(step.source is None for step in relief.steps)


def test_plans_that_say_nothing_about_the_history_are_refused() -> None:
    with pytest.raises(InvalidPlan, match="schema_version: 2 is not known here, but 1"):
        check_version({**document("proposed"), "schema_version": 2})
    check_version(document("proposed"))
    applied = plan_from_document(sample("relief", "restored"))
    with pytest.raises(UnplayablePlan, match=r"steps\.0 is restored: the history has what it did"):
        topics_of(applied)
    with pytest.raises(UnplayablePlan, match="throttles replication"):
        topics_of(plan("throttle"))
    with pytest.raises(UnplayablePlan, match="it only waits"):
        topics_of(plan("wait"))
    move = plan("logdir-move")
    with pytest.raises(UnplayablePlan, match="no bytes of visits on volume /dev/sdb1 of broker 3"):
        relief_of(move, {"orders": 1.0}, {})
    with pytest.raises(UnplayablePlan, match="no log dir /data/2/kafka of broker 3, which visits-3 moves to"):
        relief_of(move, {"visits": 1.0}, {})
    other = plan("replica-move")
    with pytest.raises(UnplayablePlan, match="no broker 4, which visits-3 moves to"):
        relief_of(other, {"visits": 1.0}, {})
    with pytest.raises(UnplayablePlan, match="moves off another broker than the plan's, 2"):
        target_of(other.steps[0], replace(other, broker_id=2))


def test_a_plan_keeps_a_volume_below_its_limit_and_fills_the_other() -> None:
    """In the simulation a copy is replication: it goes on while producers are held."""
    count = 60
    observed: Observed = history(np.full(count, 20.0), np.zeros(count), first=(7800.0, 2000.0))
    volumes = [VolumePlace(1, "a"), VolumePlace(2, "a")]
    relief = Relief("C", (FreedShare("visits", 0.5, *volumes),), 6000.0, 1000 / 6000)
    held = {"visits": np.array([[2000.0, 0.0]] * count)}
    added = relief_bytes(relief, volumes, held, elapsed(count))

    def outcome(added_bytes: Floats) -> tuple[Floats, Floats]:
        world, flows = changed(scene(count), observed, 2.0, Change(), np.zeros(count), added_bytes)
        found = simulate(world, flows, [DEFAULTS])
        return found.crest_bytes[:, 0], found.soft_tick[:, 0]

    (crest, other_crest), (soft, _) = outcome(np.zeros((count, 2)))
    (with_crest, with_other_crest), (with_soft, _) = outcome(added)
    assert soft > 0
    assert with_soft == -1
    assert with_crest < crest - 400
    assert with_other_crest == pytest.approx(other_crest + 1000, abs=300)


def test_the_time_of_a_plan_begins_when_it_was_made() -> None:
    found = plan("proposed")
    later = replace(
        found, steps=tuple(replace(step, by=found.created + timedelta(hours=2)) for step in found.steps)
    )
    held = dict.fromkeys(topics_of(later), 1e12)
    assert relief_of(later, held, {}).seconds == 7200
