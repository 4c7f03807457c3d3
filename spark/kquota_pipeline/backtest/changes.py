"""Other circumstances than those of a history: more load, another retention, a lost broker, a relief plan.
Pure: on arrays.

- Twice the load of a client: the offered bytes grow by its share of the tick's bytes. They land as all bytes
  do, spread as the disks' content is.
- Another retention of a topic: its bytes on each disk are multiplied, from the beginning on, as if
  the topic had always been kept for that long.
- A lost broker: its disks are gone from the beginning on, and the bytes that would have landed on them land
  on the others, by their shares. Its content is not copied.
- A relief plan: it is applied at the beginning, and frees and moves the share of its topics that it planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from kquota_pipeline.backtest.flows import Floats, Flows, Observed, flows_of
from kquota_pipeline.backtest.relief import Relief
from kquota_pipeline.backtest.scene import Scene


@dataclass(frozen=True, slots=True)
class Change:
    """The circumstances that change. `loads` are factors by user and client id, None for all clients of the
    user, `retentions` factors by topic, `lost` brokers, and `relief` a plan.
    """

    loads: Mapping[tuple[str, str | None], float] = field(default_factory=dict)
    retentions: Mapping[str, float] = field(default_factory=dict)
    lost: frozenset[int] = frozenset()
    relief: Relief | None = None


class NothingLeft(ValueError):
    """All brokers of a cluster are to be lost."""


def with_load(flows: Flows, added_ratio: Floats) -> Flows:
    """Return the flows where producers offer more, or less, by a ratio of each tick."""
    return replace(flows, offered_bytes=flows.offered_bytes * np.maximum(0.0, 1.0 + added_ratio))


def with_retention(observed: Observed, added_bytes: Floats) -> Observed:
    """Return the history with more bytes on each disk, [tick, volume], or fewer."""
    consumed = np.clip(observed.consumed_bytes + added_bytes, 0.0, observed.capacity_bytes)
    return replace(observed, consumed_bytes=np.rint(consumed))


def without_brokers(scene: Scene, flows: Flows, lost: frozenset[int]) -> tuple[Scene, Flows]:
    """Return the world without some brokers.

    Raises:
        NothingLeft: no volume remains.
    """
    kept = np.array([volume.broker_id not in lost for volume in scene.volumes], dtype=bool)
    if not kept.any():
        raise NothingLeft(f"no broker remains without {', '.join(map(str, sorted(lost)))}")
    total, remaining = flows.share.sum(axis=1), flows.share[:, kept].sum(axis=1)
    scale = np.divide(total, remaining, out=np.ones_like(total), where=remaining > 0)
    share = flows.share[:, kept] * scale[:, None]
    others = {
        name: getattr(flows, name)[..., kept]
        for name in ("first_bytes", "beyond_bytes", "arrived", "deleted_until", "capacity_bytes", "present")
    }
    return (
        replace(
            scene,
            volumes=[volume for volume in scene.volumes if volume.broker_id not in lost],
            unknown=_without(scene.unknown, lost),
            decommissioned=_without(scene.decommissioned, lost),
            terms=scene.terms[:, kept],
            volume_ids=scene.volume_ids[:, kept],
            failed=scene.failed[:, kept],
            offline=scene.offline[:, kept],
            fill_ceilings=None if scene.fill_ceilings is None else scene.fill_ceilings[:, kept],
            topics=None if scene.topics is None else scene.topics[:, kept],
        ),
        # Retention comes as far in time as it did: its moments follow from what arrived in the history.
        replace(flows, share=share, **others),
    )


def changed(
    scene: Scene,
    observed: Observed,
    replication_factor: float,
    change: Change,
    added_ratio: Floats,
    added_bytes: Floats,
) -> tuple[Scene, Flows]:
    """Return the world after a change; `added_ratio` is what its loads add, and `added_bytes` what its
    retentions and its relief plan add.
    """
    flows = flows_of(with_retention(observed, added_bytes), replication_factor)
    if change.lost:
        scene, flows = without_brokers(scene, flows, change.lost)
    return scene, with_load(flows, added_ratio)


def _without(brokers: Mapping[int, frozenset[int]], lost: frozenset[int]) -> dict[int, frozenset[int]]:
    return {tick: left for tick, ids in brokers.items() if (left := ids - lost)}
