"""All options that relieve a volume, in one order."""

from __future__ import annotations

from kquota.retention.relief import PATIENCE_MS, Option, Situation, options
from kquota.retention.relief_moves import moves
from kquota.retention.relief_throttle import throttle


def ranked(situation: Situation, patience_ms: int = PATIENCE_MS) -> list[Option]:
    """Return what would free the bytes that are missing, or win time, the best first."""
    slowed = throttle(situation)
    found = [*options(situation, patience_ms), *moves(situation), *(() if slowed is None else (slowed,))]
    return sorted(found, key=lambda one: one.rank)
