"""The world around a policy in closed loop, as arrays, and the course of events under it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kquota.policy.limits import LimitPair
from kquota.policy.topic_scope import Topics
from kquota.policy.volume import Volume, VolumeStatus
from kquota_pipeline.backtest.policy import NOT_JUDGED
from kquota_pipeline.backtest.producers import Name

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
NONE = -1
"""The code of what is not there, or not known."""


@dataclass(frozen=True, slots=True)
class VolumePlace:
    """One volume of the cluster."""

    broker_id: int
    name: str


class Terms(NamedTuple):
    """The mount point of a volume and the limits that its record carried, None where they can't be judged."""

    mount_point: str | None
    recorded: LimitPair | None


class Writers(NamedTuple):
    """The producers of a tick with their topics, and how many clients its records do not list."""

    topics: Mapping[Name, Collection[str] | None]
    unlisted: int


@dataclass(frozen=True, slots=True)
class Scene:
    """The world around the policy: ticks are epoch seconds, columns are volumes.

    `terms` are places in `all_terms`, `volume_ids` codes of ids (NONE where not known) and `topics` places in
    `all_topics` (NONE where not named; without an array no volume names any); all are [tick, volume], as are
    `failed`, `offline` and `fill_ceilings` (bytes per second; nan where not reported, without an array
    nowhere). Cells of a volume that was absent do not count. One that is offline is in its broker's record,
    without a vote.

    `unknown` names brokers that were active without a fresh record, `decommissioned` those that ended in a
    tick. `producers` has who wrote in a tick, where records report it, and `held` are the ticks in which the
    brokers held producers.
    """

    ticks: NDArray[np.int64]
    volumes: Sequence[VolumePlace]
    terms: Codes
    all_terms: Sequence[Terms]
    volume_ids: Codes
    failed: NDArray[np.bool_]
    offline: NDArray[np.bool_]
    unknown: Mapping[int, frozenset[int]]
    decommissioned: Mapping[int, frozenset[int]]
    producers: Mapping[int, Writers]
    held: Set[int]
    fill_ceilings: Floats | None = None
    topics: Codes | None = None
    all_topics: Sequence[Topics] = ()

    @property
    def tick_seconds(self) -> int:
        """The length of a tick."""
        return int(self.ticks[1] - self.ticks[0]) if len(self.ticks) > 1 else 1

    def topics_at(self, tick: int, volume: int) -> Topics | None:
        """Return the topics on a volume; None where they are not named."""
        code = NONE if self.topics is None else int(self.topics[tick, volume])
        return None if code == NONE else self.all_topics[code]

    def volume_at(
        self, tick: int, column: int, capacity_bytes: int, consumed_bytes: int, limits: LimitPair | None
    ) -> Volume:
        """Return a volume as its broker's record has it, under these limits."""
        code = self.volume_ids[tick, column]
        ceiling = np.nan if self.fill_ceilings is None else self.fill_ceilings[tick, column]
        status = VolumeStatus.FAILED if self.failed[tick, column] else VolumeStatus.OK
        return Volume(
            name=self.volumes[column].name,
            capacity_bytes=capacity_bytes,
            consumed_bytes=consumed_bytes,
            limits=limits,
            limits_problem=None if limits is not None else NOT_JUDGED,
            volume_id=None if code == NONE else str(code),
            status=VolumeStatus.OFFLINE if self.offline[tick, column] else status,
            fill_ceiling_bytes_per_second=None if np.isnan(ceiling) else int(ceiling),
            topics=self.topics_at(tick, column),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result: arrays [tick, policy], unless another shape is named.

    `factors` are the worst of all topics, `undetermined` counts brokers, `held_bytes` are those held back; of
    these, `lost_bytes` [policy] have not been sent by the end. `fullest` is the place of the fullest volume,
    `filled` counts those without room. `paused`, `slowed`, `unlisted` and `by_cluster` are the fields of
    `producers.Tally`. `crest_bytes` [volume, policy] is the most that a volume held; `soft_tick` and
    `hard_tick` [volume, policy] are where it was first over a limit, NONE for never.
    """

    factors: Floats
    undetermined: Codes
    held_bytes: Floats
    lost_bytes: Floats
    fullest_ratio: Floats
    fullest: Codes
    filled: Codes
    paused: Codes
    slowed: Codes
    unlisted: Codes
    by_cluster: NDArray[np.bool_]
    crest_bytes: Floats
    soft_tick: Codes
    hard_tick: Codes

    @staticmethod
    def empty(ticks: int, volumes: int, policies: int) -> Outcome:
        """Return one to be filled in."""
        each, of_volume = (ticks, policies), (volumes, policies)

        def counts() -> Codes:
            return np.zeros(each, dtype=np.int32)

        return Outcome(
            factors=np.ones(each),
            undetermined=counts(),
            held_bytes=np.zeros(each),
            lost_bytes=np.zeros(policies),
            fullest_ratio=np.zeros(each),
            fullest=counts(),
            filled=counts(),
            paused=counts(),
            slowed=counts(),
            unlisted=counts(),
            by_cluster=np.zeros(each, dtype=bool),
            crest_bytes=np.zeros(of_volume),
            soft_tick=np.full(of_volume, NONE, dtype=np.int32),
            hard_tick=np.full(of_volume, NONE, dtype=np.int32),
        )

    def put(self, part: Outcome, policies: Sequence[int]) -> None:
        """Fill in the outcome of some of the policies."""
        for name in self.__dataclass_fields__:
            getattr(self, name)[..., policies] = getattr(part, name)
