"""The settings of a cycle."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from kquota.core.decision import Mode
from kquota.core.policy import PolicySettings
from kquota.settings.model import LimitsSection, Settings


@dataclass(frozen=True, slots=True)
class CycleSettings:
    """The settings of a cycle."""

    broker_id: int
    limits: LimitsSection
    policy: PolicySettings
    wanted_mode: Mode
    release_margin: Fraction
    interval_seconds: float
    join_grace_seconds: float
    future_tolerance: timedelta
    lease_seconds: float

    @staticmethod
    def of(settings: Settings, broker_id: int) -> CycleSettings:
        """Take what a cycle needs from the configuration."""
        return CycleSettings(
            broker_id=broker_id,
            limits=settings.limits,
            policy=PolicySettings(settings.fallback_action, timedelta(seconds=settings.staleness_seconds)),
            wanted_mode=settings.mode,
            release_margin=settings.release_margin_ratio,
            interval_seconds=settings.interval_seconds,
            join_grace_seconds=settings.join_grace_seconds,
            future_tolerance=timedelta(seconds=settings.future_tolerance_seconds),
            lease_seconds=settings.lease_seconds,
        )
