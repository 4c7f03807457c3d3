"""The figures as docs/bench-spark.md, with what was aimed at and whether it was reached. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_HEAD = """\
# What the pipeline costs, measured

<!-- Written by `make bench-spark`. Do not edit. -->

1,000 brokers with 8 volumes each, one sample per 30 s, in Parquet files as the tables have them; some
volumes cross their limits. Spark runs the pipeline's own functions, DuckDB the same work in SQL on the same
files in the same run; both must come to the same answer. CPU seconds are those of the whole engine, after
one run to warm up.

- tick replay: the policy's state at every tick of the cluster
- 32 policies: the same for 32 policies of one limit type, by three figures per tick (without latches)
- regression: the least-squares line of every volume
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """What one work cost one engine."""

    engine: str
    cores: int
    days: int
    work: str
    answer: Mapping[str, float]
    cpu_seconds: float
    wall_seconds: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """An aim, what came out, and whether it holds; what `must` hold fails the run."""

    aim: str
    found: str
    holds: bool
    must: bool = False


def claims(figures: Sequence[Figure], rows_of: Mapping[int, int], days: int, half: int) -> list[Verdict]:
    """Return the verdicts on all aims."""

    def of(engine: str, work: str, *, cores: int = 2, of_days: int = days) -> Figure:
        return next(
            f for f in figures if (f.engine, f.work, f.cores, f.days) == (engine, work, cores, of_days)
        )

    def speed(work: str) -> float:
        return rows_of[days] / of("spark", work).cpu_seconds / 1e6

    found = []
    for work, least in (("tick replay", 12.0), ("regression", 8.0)):
        found.append(
            Verdict(
                f"{work}: at least {least:g} M rows per CPU second",
                f"{speed(work):.1f} M",
                speed(work) >= least,
            )
        )
    for work in ("tick replay", "32 policies", "regression"):
        ratio = of("spark", work).cpu_seconds / of("duckdb", work).cpu_seconds
        found.append(Verdict(f"{work}: at most 2.5 x DuckDB's CPU", f"{ratio:.2f} x", ratio <= 2.5))
        same = all(
            math.isclose(value, of("duckdb", work).answer[name], rel_tol=1e-6)
            for name, value in of("spark", work).answer.items()
        )
        found.append(
            Verdict(f"{work}: the same answer as DuckDB", "the same" if same else "another", same, must=True)
        )
    many = of("spark", "32 policies").cpu_seconds / of("spark", "tick replay").cpu_seconds
    found.append(Verdict("32 policies: at most 1.3 x the CPU of one", f"{many:.2f} x", many <= 1.3))
    more = of("spark", "tick replay").cpu_seconds / of("spark", "tick replay", of_days=half).cpu_seconds
    allowed = 1.05 * days / half
    found.append(
        Verdict(
            f"{days / half:g} x the days: at most {allowed:.2f} x the CPU", f"{more:.2f} x", more <= allowed
        )
    )
    gain = of("spark", "tick replay", cores=1).wall_seconds / of("spark", "tick replay").wall_seconds
    found.append(Verdict("two cores: at least 1.7 x one", f"{gain:.2f} x", gain >= 1.7))
    return found


def page(
    figures: Sequence[Figure], verdicts: Sequence[Verdict], rows_of: Mapping[int, int], date: str, cores: int
) -> str:
    """Return the whole page."""
    lines = [_HEAD, f"Measured {date} on {cores} cores.", "", "| aim | found | reached |", "|---|---|---|"]
    lines += [f"| {v.aim} | {v.found} | {'yes' if v.holds else '**no**'} |" for v in verdicts]
    lines += ["", "| engine | cores | samples | work | CPU s | wall s |", "|---|---|---|---|---|---|"]
    lines += [_row(figure, rows_of[figure.days]) for figure in figures]
    return "\n".join(lines) + "\n"


def _row(figure: Figure, rows: int) -> str:
    seconds = f"{figure.cpu_seconds:.1f} | {figure.wall_seconds:.1f}"
    return f"| {figure.engine} | {figure.cores} | {rows / 1e6:.0f} M | {figure.work} | {seconds} |"
