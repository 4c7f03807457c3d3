"""In closed loop, what a policy holds back does not land, and what no policy can hold does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from kquota.policy.decision import FallbackAction, Scope
from kquota.policy.limits import Limit, LimitPair, LimitType
from kquota.policy.topic_scope import Topics
from kquota_pipeline.backtest.closed_loop import REGAINED_SHARE, simulate
from kquota_pipeline.backtest.flows import Flows, Observed, flows_of
from kquota_pipeline.backtest.policy import Limits, Policy
from kquota_pipeline.backtest.producers import Tally
from kquota_pipeline.backtest.scene import NONE, Scene, Terms, VolumePlace, Writers

TICK_SECONDS = 600
CAPACITY = 10_000.0
PERCENT = LimitType.MIN_FREE_PERCENTAGE
NO_QUOTA = Policy(
    "none",
    Limits(hard=Limit.of(LimitType.MIN_FREE_BYTES, 0), soft=Limit.of(LimitType.MIN_FREE_BYTES, 1)),
    fallback_action=FallbackAction.OPEN,
)
DEFAULTS = Policy("defaults", Limits())


def history(
    produced: np.ndarray, deleted: np.ndarray, first: tuple[float, float] = (3000.0, 3000.0)
) -> Observed:
    """Two volumes of two brokers that take every byte once each."""
    gained = np.cumsum(produced - deleted)
    consumed = np.stack([level + gained - gained[0] for level in first], axis=1)
    return Observed(consumed, np.full(consumed.shape, CAPACITY), produced, produced)


@dataclass(frozen=True)
class Course:
    """The outcome of one policy: [tick], `consumed_bytes` [tick, volume]."""

    factors: np.ndarray
    undetermined: np.ndarray
    held_bytes: np.ndarray
    consumed_bytes: np.ndarray
    lost_bytes: float
    tallies: list[Tally]


def scene(ticks: int, **changes: object) -> Scene:
    pair = LimitPair(soft=Limit.of(PERCENT, 15), hard=Limit.of(PERCENT, 5))
    fields = {
        "ticks": np.arange(1, ticks + 1) * TICK_SECONDS,
        "volumes": [VolumePlace(1, "a"), VolumePlace(2, "a")],
        "terms": np.zeros((ticks, 2), dtype=np.int32),
        "all_terms": [Terms("/data/1", pair)],
        "volume_ids": np.zeros((ticks, 2), dtype=np.int32),
        "offline": np.zeros((ticks, 2), dtype=bool),
        "failed": np.zeros((ticks, 2), dtype=bool),
        "unknown": {},
        "decommissioned": {},
        "producers": {},
        "held": frozenset(),
    }
    return Scene(**(fields | changes))  # type: ignore[arg-type]


def run(observed: Observed, policy: Policy, **changes: object) -> tuple[Course, Flows]:
    flows = flows_of(observed, replication_factor=2.0)
    consumed = np.empty_like(observed.consumed_bytes)

    def watch(tick: int, _: object, of_tick: np.ndarray) -> None:
        consumed[tick] = of_tick[:, 0]

    found = simulate(scene(len(observed.produced_bytes), **changes), flows, [policy], watch)
    tallies = zip(found.paused, found.slowed, found.unlisted, found.by_cluster, strict=True)
    course = Course(
        found.factors[:, 0],
        found.undetermined[:, 0],
        found.held_bytes[:, 0],
        consumed,
        float(found.lost_bytes[0]),
        [
            Tally(int(paused[0]), int(slowed[0]), int(unlisted[0]), bool(by_cluster[0]))
            for paused, slowed, unlisted, by_cluster in tallies
        ],
    )
    return course, flows


def test_without_a_quota_the_history_comes_out_as_it_was() -> None:
    rng = np.random.default_rng(3)
    produced = rng.uniform(5, 15, 300)
    deleted = np.where(np.arange(300) % 20 == 19, 150.0, 0.0)
    observed = history(produced, deleted)
    outcome, _ = run(observed, NO_QUOTA)
    assert (outcome.factors == 1).all()
    assert outcome.held_bytes.sum() == 0
    np.testing.assert_allclose(outcome.consumed_bytes, observed.consumed_bytes, atol=1e-6)


def test_a_disk_that_would_fill_does_not_under_the_defaults_and_producers_wait() -> None:
    observed = history(np.full(400, 25.0), np.zeros(400))
    free, _ = run(observed, NO_QUOTA)
    assert free.consumed_bytes.max() == CAPACITY
    kept, _ = run(observed, DEFAULTS)
    assert kept.consumed_bytes.max() < 0.951 * CAPACITY
    assert kept.held_bytes.sum() > 0
    assert kept.factors.min() < 0.1


def test_retention_deletes_what_arrived_by_then_and_not_what_never_came() -> None:
    # every byte is deleted 50 ticks after it came: without production the disk runs empty of it
    produced = np.full(300, 20.0)
    deleted = np.where(np.arange(300) >= 50, 20.0, 0.0)
    observed = history(produced, deleted)
    everything_held = Policy(
        "pause",
        Limits(hard=Limit.of(LimitType.CONSUMED_SPACE, 1), soft=Limit.of(LimitType.CONSUMED_SPACE, 0)),
    )
    outcome, _ = run(observed, everything_held)
    assert outcome.held_bytes.sum() > 0.9 * produced.sum()
    assert outcome.consumed_bytes[-1, 0] < observed.consumed_bytes[-1, 0]
    assert (outcome.consumed_bytes >= 0).all()


def test_what_was_held_back_comes_later_and_a_fifth_never() -> None:
    burst = np.full(400, 10.0)
    burst[50:90] = 160.0
    deleted = np.zeros(400)
    deleted[150:160] = 600.0
    observed = history(burst, deleted)
    outcome, _ = run(observed, DEFAULTS)
    held = outcome.held_bytes.sum()
    assert held > 0
    assert outcome.factors[-1] == 1
    assert outcome.lost_bytes >= (1 - REGAINED_SHARE) * held - 1e-6
    assert outcome.lost_bytes < held


def test_replication_to_a_broker_that_was_away_goes_on_in_pause() -> None:
    produced, deleted = np.full(200, 10.0), np.zeros(200)
    observed = history(produced, deleted, first=(9300.0, 3000.0))
    consumed = observed.consumed_bytes.copy()
    consumed[50:100, 1] = np.nan
    observed = Observed(consumed, observed.capacity_bytes, produced, produced)
    outcome, flows = run(observed, DEFAULTS)
    assert flows.beyond_bytes[100, 1] > 300
    before, back = outcome.consumed_bytes[99, 1], outcome.consumed_bytes[100, 1]
    assert back - before == pytest.approx(flows.beyond_bytes[100, 1], rel=0.2)


def test_an_unknown_broker_pauses_and_an_absent_one_does_not() -> None:
    produced, deleted = np.full(60, 1.0), np.zeros(60)
    observed = history(produced, deleted)
    consumed = observed.consumed_bytes.copy()
    consumed[20:30, 1] = np.nan
    observed = Observed(consumed, observed.capacity_bytes, produced, produced)
    absent, _ = run(observed, DEFAULTS)
    assert (absent.factors == 1).all()
    unknown, _ = run(observed, DEFAULTS, unknown={tick: frozenset({2}) for tick in range(22, 30)})
    assert (unknown.factors[22:30] == 0).all()
    assert (unknown.undetermined[22:30] == 1).all()
    assert unknown.factors[31] == 1


def test_a_bounded_broker_holds_producers_only_once_its_volume_may_have_reached_a_limit() -> None:
    observed = history(np.full(60, 1.0), np.zeros(60))
    consumed = observed.consumed_bytes.copy()
    consumed[20:, 1] = np.nan
    observed = Observed(consumed, observed.capacity_bytes, observed.produced_bytes, observed.produced_bytes)
    unknown = {tick: frozenset({2}) for tick in range(20, 60)}
    bounded = Policy("bounded", Limits(), fallback_action=FallbackAction.BOUNDED)
    # 3020 of 10000 bytes, and 1 byte a second more: at 8500 after 9.1 ticks, at 9500 after 10.8
    ceilings = np.ones((60, 2))
    outcome, _ = run(observed, bounded, unknown=unknown, fill_ceilings=ceilings)
    assert (outcome.factors[:29] == 1).all()
    assert ((outcome.factors[29:30] > 0) & (outcome.factors[29:30] < 1)).all()
    assert (outcome.factors[30:] == 0).all()
    assert (outcome.undetermined == 0).all()
    without, _ = run(observed, bounded, unknown=unknown)
    assert (without.factors[22:] == 0).all(), "records without a bound"


def filling(policy: Policy, topics: tuple[Topics | None, Topics | None]) -> Course:
    """One volume fills, the other has room. A producer writes to each, a third to both; later, a fourth to
    unknown topics.
    """
    count = 300
    produced, deleted = np.full(count, 10.0), np.zeros(count)
    observed = history(produced, deleted, first=(8000.0, 2000.0))
    all_topics = [names for names in topics if names is not None]
    codes = [NONE if names is None else all_topics.index(names) for names in topics]
    of_volumes = np.tile(np.array(codes, dtype=np.int32), (count, 1))
    writing = {
        ("one", ""): ["full"],
        ("other", ""): ["roomy"],
        ("both", ""): ["full", "roomy"],
    }
    producers = {0: Writers(writing, 0), 280: Writers(writing | {("unknown", ""): None}, 5)}
    return run(observed, policy, topics=of_volumes, all_topics=all_topics, producers=producers)[0]


def test_with_the_scope_of_the_volume_only_the_topics_on_it_wait_and_its_disk_is_as_safe() -> None:
    cluster = filling(DEFAULTS, (("full",), ("roomy",)))
    volume = filling(replace(DEFAULTS, scope=Scope.VOLUME), (("full",), ("roomy",)))
    held = np.flatnonzero(volume.factors[:280] < 1)
    assert held.size > 100
    assert {volume.tallies[tick][:2] for tick in held} == {(0, 2)}
    assert {cluster.tallies[tick][:2] for tick in np.flatnonzero(cluster.factors[:280] < 1)} == {(0, 3)}
    np.testing.assert_allclose(volume.consumed_bytes[:, 0], cluster.consumed_bytes[:, 0], rtol=0.01)
    assert (volume.consumed_bytes[:, 1] >= cluster.consumed_bytes[:, 1]).all()
    assert volume.consumed_bytes[-1, 1] > cluster.consumed_bytes[-1, 1] + 100
    assert 0 < volume.held_bytes.sum() < cluster.held_bytes.sum()
    assert {volume.tallies[tick].by_cluster for tick in held} == {False}
    assert volume.tallies[-1] == (0, 3, 5, True), "the topics of the fourth are unknown"
    assert cluster.tallies[-1] == (0, 4, 5, False)


def test_where_the_history_names_no_topics_the_scope_of_the_volume_is_that_of_the_cluster() -> None:
    cluster = filling(DEFAULTS, (None, ("roomy",)))
    volume = filling(replace(DEFAULTS, scope=Scope.VOLUME), (None, ("roomy",)))
    np.testing.assert_array_equal(volume.consumed_bytes, cluster.consumed_bytes)
    np.testing.assert_array_equal(volume.held_bytes, cluster.held_bytes)
    assert [tally[:3] for tally in volume.tallies] == [tally[:3] for tally in cluster.tallies]
    assert [tally.by_cluster for tally in volume.tallies] == list(volume.factors < 1)


def test_a_disk_with_room_takes_all_of_its_topics_that_are_not_held_whatever_else_is_on_it() -> None:
    policy = replace(DEFAULTS, scope=Scope.VOLUME)
    apart = filling(policy, (("full",), ("roomy",)))
    for names in (("full", "roomy"), None, ()):
        np.testing.assert_array_equal(
            filling(policy, (("full",), names)).consumed_bytes, apart.consumed_bytes
        )


def test_a_topic_on_two_volumes_is_held_by_the_worse_one_alone() -> None:
    volume = filling(replace(DEFAULTS, scope=Scope.VOLUME), (("full", "roomy"), ("roomy",)))
    cluster = filling(DEFAULTS, (("full", "roomy"), ("roomy",)))
    np.testing.assert_array_equal(volume.consumed_bytes, cluster.consumed_bytes)
    assert [tally[:2] for tally in volume.tallies] == [tally[:2] for tally in cluster.tallies]


def test_a_decommissioned_broker_holds_nobody_any_more() -> None:
    produced, deleted = np.full(60, 1.0), np.zeros(60)
    observed = history(produced, deleted, first=(3000.0, 9600.0))
    consumed = observed.consumed_bytes.copy()
    consumed[20:, 1] = np.nan
    observed = Observed(consumed, observed.capacity_bytes, produced, produced)
    kept, _ = run(observed, DEFAULTS)
    assert (kept.factors == 0).all()
    gone, _ = run(observed, DEFAULTS, decommissioned={30: frozenset({2})})
    assert (gone.factors[:30] == 0).all()
    assert (gone.factors[30:] == 1).all()


def test_a_latch_holds_until_the_margin_is_free_again() -> None:
    produced = np.full(200, 50.0)
    deleted = np.full(200, 0.0)
    deleted[140:] = 60.0
    observed = history(produced, deleted, first=(9000.0, 3000.0))
    tight = Policy("tight", Limits(), release_margin=Fraction(1, 2))
    outcome, flows = run(observed, tight)
    ratio = outcome.consumed_bytes[:, 0] / CAPACITY
    paused = outcome.factors == 0
    if paused.any():
        first = int(np.argmax(paused))
        released = first + int(np.argmax(~paused[first:]))
        assert ratio[released] < 0.9
    assert flows.first_bytes[0] == 9000
