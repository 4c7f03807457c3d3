"""What was aimed at, and whether it was reached."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.pipeline.foretold import OTHERS, OURS, Accuracy
from bench.pipeline.plan import Profile
from bench.pipeline.results import Figure, Saved
from bench.pipeline.work import MANY_POLICIES, REGRESSION, REPLAY, WORKS


@dataclass(frozen=True, slots=True)
class Verdict:
    """An aim, what came out, and whether it holds; what `must` hold fails the run."""

    aim: str
    found: str
    holds: bool
    must: bool = False


def claims(profile: Profile, saved: Sequence[Saved]) -> list[Verdict]:
    """Return the verdicts on all aims of which the figures are there."""
    figures = {(f.engine, f.work, f.cores, f.days): f for step in saved for f in step.figures}

    def of(engine: str, work: str, days: int, cores: int = 2) -> Figure | None:
        return figures.get((engine, work, cores, days))

    verdicts = []
    for days in (profile.days, profile.long_days):
        if days is None:
            continue
        for work in WORKS:
            verdicts += _beside_duckdb(of("spark", work, days), of("duckdb", work, days))
        verdicts += _speed(of("spark", REPLAY, days), 12.0) + _speed(of("spark", REGRESSION, days), 8.0)
        verdicts += _ratio(
            of("spark", MANY_POLICIES, days), of("spark", REPLAY, days), "32 policies: CPU beside one", 1.3
        )
    for work in (REPLAY, REGRESSION):
        more, fewer = of("spark", work, 2 * profile.days), of("spark", work, profile.days)
        verdicts += _ratio(more, fewer, f"{work}: CPU of twice the days", 2.1)
        one, two = of("spark", work, profile.days, cores=1), of("spark", work, profile.days)
        if one is not None and two is not None:
            gain = one.wall / two.wall
            verdicts.append(Verdict(f"{work}: two cores ≥ 1.7 x one", f"{gain:.2f} x", gain >= 1.7))
    for step in saved:
        if step.ingest is not None:
            verdicts += _ingest(step.ingest)
        verdicts += _accuracy({one["method"]: one for one in step.accuracy})
    return verdicts


def _beside_duckdb(ours: Figure | None, theirs: Figure | None) -> list[Verdict]:
    if ours is None or theirs is None:
        return []
    same = all(
        math.isclose(value, theirs.answer[name], rel_tol=1e-6, abs_tol=1e-9)
        for name, value in ours.answer.items()
    )
    where = f"{ours.work}, {_millions(ours.rows)}"
    found = _ratio(ours, theirs, f"{where}: CPU beside DuckDB's", 2.5)
    found.append(
        Verdict(f"{where}: the same answer as DuckDB", "the same" if same else "another", same, True)
    )
    if "paused" in ours.answer:
        ticks, paused, opened = (ours.answer[name] for name in ("ticks", "paused", "open"))
        text = f"{paused:,.0f} of {ticks:,.0f} ticks in PAUSE, {opened:,.0f} in OPEN"
        crossed = 0 < paused < ticks and 0 < opened < ticks - paused
        found.append(Verdict(f"{where}: limits are really crossed", text, crossed, True))
    return found


def _speed(figure: Figure | None, least_millions: float) -> list[Verdict]:
    if figure is None:
        return []
    speed = figure.rows / figure.cpu / 1e6
    aim = f"{figure.work}, {_millions(figure.rows)}: ≥ {least_millions:g} M samples per CPU second"
    return [Verdict(aim, f"{speed:.1f} M", speed >= least_millions)]


def _ratio(one: Figure | None, other: Figure | None, what: str, most: float) -> list[Verdict]:
    if one is None or other is None:
        return []
    ratio = one.cpu / other.cpu
    return [Verdict(f"{what} ≤ {most:g} x", f"{ratio:.2f} x", ratio <= most)]


def _ingest(found: Mapping[str, float]) -> list[Verdict]:
    speed = found["records"] / found["seconds"]
    return [
        Verdict("ingest: ≥ 12,000 records per second", f"{speed:,.0f}", speed >= 12_000),
        Verdict(
            "ingest: every record once", "so" if found["exact"] else "not so", bool(found["exact"]), True
        ),
    ]


def _accuracy(found: Mapping[str, Accuracy]) -> list[Verdict]:
    if not found:
        return []
    ours = found[OURS]
    verdicts = []
    for other in OTHERS:
        ratio = ours["mean_error_ratio"] / found[other]["mean_error_ratio"]
        verdicts.append(Verdict(f"forecast: mean error < that of {other}", f"{ratio:.2f} x", ratio < 1))
    covered = ours["covered_ratio"] or 0.0
    aim = "forecast: the interval of 80 % holds 70 to 90 %"
    return [*verdicts, Verdict(aim, f"{100 * covered:.0f} %", 0.7 <= covered <= 0.9)]


def _millions(rows: int) -> str:
    return f"{rows / 1e6:.0f} M"
