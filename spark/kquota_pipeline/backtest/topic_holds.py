"""The topics, volumes and producers that a policy with the scope of the volume holds. Pure.

The core narrows a verdict to topics; this only gathers what it needs, while something is over a limit.
"""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from kquota.policy.decision import Decision
from kquota.policy.topic_scope import NoScope, Topics, TopicScope, narrowed
from kquota_pipeline.backtest.scene import Floats, Scene
from kquota_pipeline.backtest.verdicts import Verdict

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TopicHolds:
    """The topics of the volumes, as last reported and as they are."""

    def __init__(self, scene: Scene, present: NDArray[np.bool_]) -> None:
        self._scene, self._present = scene, present
        self._reported: list[Topics | None] = [None] * len(scene.volumes)

    def observe(self, tick: int) -> None:
        """Take in what the records of a tick name."""
        for column in np.flatnonzero(self._present[tick]):
            self._reported[column] = self._scene.topics_at(tick, int(column))

    def decision(self, verdict: Verdict, policy: int) -> Decision:
        """Return the decision of a policy, with the headroom of each topic."""
        headroom = Fraction(verdict.headroom[policy])
        stakes = []
        for column in np.flatnonzero(verdict.votes[:, policy] < 1):
            is_old = verdict.unnamed is not None and verdict.unnamed[column, policy]
            topics = None if is_old else self._reported[column]
            stakes.append((Fraction(verdict.votes[column, policy]), topics))
        everywhere = [Fraction(0)] if verdict.falls_back[policy] else []
        scope = narrowed(stakes, everywhere)
        is_lacking = scope is None and headroom < 1 and headroom not in everywhere
        return Decision(
            headroom, (), (), False, None, _EPOCH, scope=scope, no_scope=NoScope(None) if is_lacking else None
        )

    def passing(self, tick: int, decision: Decision) -> Floats:
        """Return for each volume the share of what is written to it that a decision lets through."""
        scope, volumes = decision.scope, len(self._scene.volumes)
        if scope is None:
            return np.full(volumes, float(decision.headroom))
        passing = np.full(volumes, float(scope.others))
        if self._scene.topics is not None:
            for column in np.flatnonzero(self._present[tick]):
                if names := self._scene.topics_at(tick, int(column)):
                    passing[column] = _most(scope, names)
        return passing


def _most(scope: TopicScope, names: Topics) -> float:
    return float(max(scope.of(topic) for topic in names))
