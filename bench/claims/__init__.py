"""What is claimed of the figures: ratios within one run, asserted; and the aims beside them. Pure."""

from __future__ import annotations

from bench.claims.costs import cost_verdicts
from bench.claims.holding import holding_verdicts
from bench.claims.limits import limit_verdicts
from bench.claims.verdict import Verdict
from bench.results import Results

__all__ = ["Verdict", "judge"]


def judge(results: Results) -> list[Verdict]:
    """All statements that the results say something about; asserted ones first."""
    verdicts = [*holding_verdicts(results), *limit_verdicts(results), *cost_verdicts(results)]
    return sorted(verdicts, key=lambda verdict: not verdict.asserted)
