"""Random small fleets as scenes of the closed loop."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from kquota.policy.decision import FallbackAction, Scope
from kquota.policy.limits import Limit, LimitPair, LimitType
from kquota_pipeline.backtest.flows import Flows, Observed, flows_of
from kquota_pipeline.backtest.policy import Limits, Policy
from kquota_pipeline.backtest.scene import NONE, Scene, Terms, VolumePlace, Writers

PERCENT, BYTES, CONSUMED = LimitType.MIN_FREE_PERCENTAGE, LimitType.MIN_FREE_BYTES, LimitType.CONSUMED_SPACE
TOPICS = (("a",), ("b", "c"), ("a", "c"), (), ("d",))
TICK_SECONDS = 600


def pair(soft: Limit, hard: Limit) -> LimitPair:
    return LimitPair(soft=soft, hard=hard)


def random_policy(rng: np.random.Generator, name: str) -> Policy:
    """Draw limits of each type, also without a throttle zone, for some brokers and volumes alone."""

    def limits() -> Limits:
        kind = rng.integers(4)
        hard, zone = int(rng.integers(3, 20)), int(rng.integers(1, 40))
        if kind == 0:
            return Limits(hard=Limit.of(BYTES, hard * 997), soft=Limit.of(BYTES, (hard + zone) * 1009))
        if kind == 1:
            return Limits(
                hard=Limit.of(CONSUMED, 90_000 - 997 * hard), soft=Limit.of(PERCENT, int(rng.integers(5, 40)))
            )
        return Limits(
            hard=Limit.of(PERCENT, Fraction(hard, 3)), soft=Limit.of(PERCENT, Fraction(hard, 3) + zone)
        )

    own = {1: limits()} if rng.random() < 0.3 else {}
    if rng.random() < 0.3:
        whole = Limits(volumes={"/data/0": (Limit.of(PERCENT, 10), Limit.of(PERCENT, 30))})
    else:
        whole = limits()
    return Policy(
        name,
        None if rng.random() < 0.25 else whole,
        own,
        release_margin=Fraction(int(rng.integers(0, 11)), 10),
        fallback_action=list(FallbackAction)[rng.integers(3)],
        staleness_seconds=float(rng.choice([60.0, 600.0, 1500.0])),
        scope=list(Scope)[rng.integers(2)],
    )


def random_scene(number: int) -> tuple[Scene, Flows, list[Policy]]:
    """Draw a fleet, its history and policies; the same number gives the same ones."""
    rng = np.random.default_rng(number)
    brokers, each, count = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(20, 90))
    columns = brokers * each
    of_broker = np.repeat(np.arange(1, brokers + 1), each)
    capacity = np.tile(rng.choice([100_003.0, 50_021.0, 200_017.0], columns), (count, 1))
    for column in np.flatnonzero(rng.random(columns) < 0.2):
        capacity[rng.integers(count) :, column] += 10_007
    produced = rng.uniform(0, 900, count) * rng.choice([0.2, 1.0, 3.0])
    retained = int(rng.integers(5, 60))
    deleted = np.where(np.arange(count) > retained, np.roll(produced, retained), 0.0)
    deleted = np.where(rng.random(count) < 0.3, deleted * rng.uniform(0, 4), deleted)
    start = rng.uniform(0.2, 0.99, columns) * capacity[0]
    consumed = start + np.cumsum(produced - deleted)[:, None] * rng.uniform(0.3, 1.2, columns)
    consumed = np.clip(consumed + rng.normal(0, 300, consumed.shape), 0, capacity).round()
    away = np.zeros((count, columns), dtype=bool)
    unknown: dict[int, set[int]] = {}
    decommissioned: dict[int, set[int]] = {}
    for broker in range(1, brokers + 2):
        begin, end = sorted(rng.integers(0, count + 1, 2))
        if rng.random() < 0.5:
            away[begin:end, of_broker == broker] = True
            if rng.random() < 0.6:
                for tick in range(begin, end):
                    unknown.setdefault(int(tick), set()).add(broker)
            elif begin < end:
                decommissioned.setdefault(int(rng.integers(begin, end)), set()).add(broker)
    away |= rng.random((count, columns)) < (0.02 if rng.random() < 0.5 else 0.0)
    away[0, 0] = away[-1, 0] = False
    consumed[away] = np.nan
    offline = away & (rng.random((count, columns)) < 0.3)
    offered = produced * rng.choice([1.0, 1.3], count)
    flows = flows_of(Observed(consumed, capacity, produced, offered), float(rng.integers(1, 4)))
    return _scene(rng, of_broker, each, offline, unknown, decommissioned), flows, [
        random_policy(rng, f"policy {n}") for n in range(6)
    ]  # fmt: skip


def _scene(
    rng: np.random.Generator,
    of_broker: np.ndarray,
    each: int,
    offline: np.ndarray,
    unknown: dict[int, set[int]],
    decommissioned: dict[int, set[int]],
) -> Scene:
    count, columns = shape = offline.shape
    recorded = [
        pair(Limit.of(PERCENT, 15), Limit.of(PERCENT, 5)),
        pair(Limit.of(PERCENT, 30), Limit.of(PERCENT, Fraction(25, 2))),
        pair(Limit.of(PERCENT, 10), Limit.of(CONSUMED, 40_000)),
        None,
    ]
    all_terms = [Terms(mount, one) for mount in ("/data/0", "/data/1", None) for one in recorded]
    usual = rng.integers(0, len(all_terms), columns)
    usual = np.where(usual % 4 == 3, usual - 1, usual)
    terms = np.tile(usual, (count, 1)).astype(np.int32)
    ids = np.tile(np.arange(columns), (count, 1)).astype(np.int32)
    ids[:, rng.random(columns) < 0.2] = NONE
    for column in range(columns):
        if rng.random() < 0.3:
            terms[rng.integers(count) :, column] = rng.integers(len(all_terms))
        if rng.random() < 0.2:
            ids[rng.integers(count) :, column] = columns + column
        if column % each and rng.random() < 0.3:  # two names change places
            at = int(rng.integers(count))
            ids[at:, [column - 1, column]] = ids[at:, [column, column - 1]]
    writers = {}
    for tick in np.flatnonzero(rng.random(count) < 0.5):
        names = [TOPICS[n] for n in rng.integers(0, len(TOPICS), 4)]
        writers[int(tick)] = Writers(
            {
                ("u", str(n)): None if rng.random() < 0.1 else list(names[n])
                for n in range(rng.integers(0, 5) % 4)
            },
            int(rng.integers(3)),
        )
    return Scene(
        ticks=(np.arange(count) + 1_000) * TICK_SECONDS,
        volumes=[VolumePlace(int(broker), f"v{n}") for n, broker in enumerate(of_broker)],
        terms=terms,
        all_terms=all_terms,
        volume_ids=ids,
        offline=offline,
        failed=rng.random(shape) < (0.03 if rng.random() < 0.4 else 0.0),
        unknown={tick: frozenset(ids) for tick, ids in unknown.items()},
        decommissioned={tick: frozenset(ids) for tick, ids in decommissioned.items()},
        producers=writers,
        held=set(np.flatnonzero(rng.random(count) < 0.2).tolist()),
        fill_ceilings=np.where(rng.random(columns) < 0.2, np.nan, rng.integers(0, 4, shape)),
        topics=rng.integers(-1, len(TOPICS), shape).astype(np.int32),
        all_topics=TOPICS,
    )
