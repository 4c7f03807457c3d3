"""The aims of the engines' works. Pure.

A ratio is judged only if both of its costs are of one run: otherwise it compares different code, versions or
machines, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.harness.claims import Claim
from bench.pipeline.cost import Cost
from bench.pipeline.work import (
    HOURS,
    REGRESSION,
    UPKEEP,
    WORKS,
)

_REGRESSION = (
    "the key contains two texts, the cluster's and the volume's, and Spark hashes them for each row. The "
    "bits of the time select its span, which costs less than a division by days; the hashing remains"
)
_TWO_CORES = (
    "Java's compiler and collector have a core to themselves if the work uses one core, and none if it uses "
    "two; and two cores of a virtual machine may be threads of the same core"
)
_HOURS = (
    "the key contains five texts, which Spark hashes and compares for each sample; numbers or hashes in "
    "their place, given when a day is closed, cost more than they save"
)


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A ratio that is not judged, as its costs are of different runs."""

    name: str


def engine_claims(costs: Sequence[Cost]) -> Iterator[Claim]:
    """Yield the claims and aims of which the costs are there."""
    return (one for one in _judged(costs) if isinstance(one, Claim))


def not_compared(costs: Sequence[Cost]) -> list[str]:
    """Return the names of the aims that are left out, as their costs are of different runs."""
    return [one.name for one in _judged(costs) if isinstance(one, NotCompared)]


def of_one_run(one: Cost, other: Cost) -> bool:
    """Return whether a run has measured both. Results of before do not name their run: then only the works of
    one measurement are known to be of one.
    """
    if one.run or other.run:
        return one.run == other.run
    return (one.engine, one.cores, one.days) == (other.engine, other.cores, other.days)


def _judged(figures: Sequence[Cost]) -> Iterator[Claim | NotCompared]:
    upkeep = {cost.work: cost for cost in figures if cost.work in UPKEEP}
    costs = {
        (cost.engine, cost.work, cost.cores, cost.days): cost for cost in figures if cost.work not in UPKEEP
    }
    all_days = sorted({days for engine, _, _, days in costs if engine == "duckdb"})
    usual = min((days for _, _, _, days in costs), default=0)
    for days in all_days or [usual]:
        ours = {work: costs.get(("spark", work, 2, days)) for work in WORKS}
        for work in WORKS:
            yield from _against_duckdb(ours[work], costs.get(("duckdb", work, 2, days)), _REGRESSION)
        if cost := ours[REGRESSION]:
            name = f"{cost}: ≥ 14 M samples per CPU second"
            yield Claim(name, cost.speed, ">=", 14.0, f"{cost.speed:.1f} M", cause=_REGRESSION)
    for work in WORKS:
        two = costs.get(("spark", work, 2, usual))
        twice = costs.get(("spark", work, 2, 2 * usual))
        yield from _ratio(twice, two, f"{work}: CPU of twice the days", 2.1, _REGRESSION)
        if two and (one := costs.get(("spark", work, 1, usual))):
            name, gain = f"{work}: two cores ≥ 1.7 x one", one.wall / two.wall
            if of_one_run(one, two):
                yield Claim(name, gain, ">=", 1.7, f"{gain:.2f} x", _TWO_CORES)
            else:
                yield NotCompared(name)
    yield from _upkeep(upkeep)


def _upkeep(costs: Mapping[str, Cost]) -> Iterator[Claim]:
    if hours := costs.get(HOURS):
        name = f"{HOURS}: ≥ 5 M samples per CPU second"
        yield Claim(name, hours.speed, ">=", 5.0, f"{hours.speed:.1f} M", cause=_HOURS)


def _against_duckdb(ours: Cost | None, theirs: Cost | None, cause: str) -> Iterator[Claim | NotCompared]:
    if ours is None or theirs is None:
        return
    different = sum(
        not math.isclose(value, theirs.answer[name], rel_tol=1e-6, abs_tol=1e-9)
        for name, value in ours.answer.items()
    )
    yield from _ratio(ours, theirs, f"{ours}: CPU compared with DuckDB's", 1.5, cause)
    shown = "another" if different else "the same"
    yield Claim(f"{ours}: the same answer as DuckDB", different, "==", 0, shown, asserted=True)


def _ratio(
    one: Cost | None, other: Cost | None, what: str, most: float, cause: str = ""
) -> Iterator[Claim | NotCompared]:
    if one is None or other is None:
        return
    name, ratio = f"{what} ≤ {most:g} x", one.cpu / other.cpu
    if of_one_run(one, other):
        yield Claim(name, ratio, "<=", most, f"{ratio:.2f} x", cause=cause)
    else:
        yield NotCompared(name)
