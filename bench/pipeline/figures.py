"""The measurements of the pipeline: values, claims, and the tables of docs/bench-spark.md. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.harness.claims import Claim
from bench.harness.page import Table
from bench.harness.results import Figures, of
from bench.pipeline.work import CHOOSING, MANY_POLICIES, ONE_CLUSTER, READING, REGRESSION, REPLAY, WORKS

OURS = "trend of crests"
OTHERS = ("naive", "seasonal-naive", "straight line")
HEAD = """\
# What the pipeline costs

1,000 brokers with 8 volumes each, a sample per 30 s, in Parquet files as the tables have them:
sorted by broker, volume and time, a folder for each day. Four volumes go over their limits again and again.
Spark runs the pipeline's own functions, DuckDB the same work in SQL over the same files in the same run, and
both have to come to the same answer. CPU seconds are those of the whole engine; figures are medians of
3 runs, after two on one day.

- **tick replay**: the policy's state at every tick of the cluster
- **32 policies**: the same for 32 policies of one limit type, without latches, by the extremes of each tick
- **regression**: the least-squares line of every volume
- **its columns read**, **its samples chosen**, **replay of one cluster**: parts of the replay, to see what
  holds it: the figures read and nothing grouped; the same of voting volumes (two texts compared); and these
  grouped by tick alone, without the cluster's name
- **ingest**: `kquota-pipeline ingest` of a history on a Kafka over TLS, 8 volumes in a record; 1 % of
  the records come twice, 0.1 % are malformed, and the tables are counted afterwards
"""
_HASHING = "the name of the cluster is part of the key, and Spark hashes a text for each row"
_REGRESSION = (
    "two texts are in the key, the cluster's and the volume's, and Spark hashes them for each "
    "row. Time is cut into spans by its bits, which costs less than days do by "
    "divisions; what is left is the hashing"
)
_TWO_CORES = (
    "what Java compiles and collects beside the work has a core to itself where the work has one, "
    "and none where it has two; and cores of a virtual machine may be one core's threads"
)
_INTERVAL = (
    "the interval is wider than it says. It is made of what each disk did on its own days, which "
    "are few; it errs on the side of a warning that comes early"
)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one work for one engine: CPU and wall seconds of each repetition, and the answer of all."""

    engine: str
    cores: int
    days: int
    rows: int
    load: float
    """Load average over the last minute before it."""
    work: str
    answer: Mapping[str, float]
    cpu_seconds: tuple[float, ...]
    wall_seconds: tuple[float, ...]

    @property
    def cpu(self) -> float:
        """The median of the CPU seconds."""
        return statistics.median(self.cpu_seconds)

    @property
    def wall(self) -> float:
        """The median of the wall seconds."""
        return statistics.median(self.wall_seconds)

    @property
    def speed(self) -> float:
        """Millions of samples per CPU second."""
        return self.rows / self.cpu / 1e6

    def __str__(self) -> str:
        """The work and on how much, for people."""
        return f"{self.work}, {self.rows / 1e6:.0f} M"


@dataclass(frozen=True, slots=True)
class Ingest:
    """`seconds` is the stream's own time; the command's, with the start of Python, JVM and Spark, is
    `command_seconds`. CPU seconds are the command's and its JVM's.
    """

    records: int
    bytes: int
    rows: int
    exact: bool
    """Whether the tables have every record once, and every malformed one in quarantine."""
    seconds: float
    command_seconds: float
    cpu_seconds: float
    load: float


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Errors are shares of the capacity, coverage a share of the forecasts; `by_day` is ours alone."""

    method: str
    forecasts: int
    mean_error_ratio: float
    median_error_ratio: float
    covered_ratio: float | None
    covered_by_day: tuple[float, ...]


KINDS = (Cost, Ingest, Accuracy)
_Costs = Mapping[tuple[str, str, int, int], Cost]


def claims(figures: Figures) -> Iterator[Claim]:
    """The aims of which the figures are there; another answer than DuckDB's, or a wrong count, is broken."""
    costs = {(cost.engine, cost.work, cost.cores, cost.days): cost for cost in of(Cost, figures)}
    all_days = sorted({days for engine, _, _, days in costs if engine == "duckdb"})
    usual = min((days for _, _, _, days in costs), default=0)
    causes = {REPLAY: _replay_cause(costs, usual), REGRESSION: _REGRESSION}
    for days in all_days or [usual]:
        ours = {work: costs.get(("spark", work, 2, days)) for work in WORKS}
        for work in WORKS:
            yield from _beside_duckdb(ours[work], costs.get(("duckdb", work, 2, days)), causes.get(work, ""))
        for work, least in ((REPLAY, 12.0), (REGRESSION, 8.0)):
            if cost := ours[work]:
                name = f"{cost}: ≥ {least:g} M samples per CPU second"
                yield Claim(name, cost.speed, ">=", least, f"{cost.speed:.1f} M", cause=causes[work])
        yield from _ratio(ours[MANY_POLICIES], ours[REPLAY], "32 policies: CPU beside one", 1.3)
    for work in (REPLAY, REGRESSION):
        two = costs.get(("spark", work, 2, usual))
        twice = costs.get(("spark", work, 2, 2 * usual))
        yield from _ratio(twice, two, f"{work}: CPU of twice the days", 2.1, causes[work])
        if two and (one := costs.get(("spark", work, 1, usual))):
            gain = one.wall / two.wall
            yield Claim(f"{work}: two cores ≥ 1.7 x one", gain, ">=", 1.7, f"{gain:.2f} x", _TWO_CORES)
    for ingest in of(Ingest, figures):
        speed = ingest.records / ingest.seconds
        yield Claim(
            "ingest: ≥ 12,000 records per second", speed, ">=", 12_000, f"{speed:,.0f}",
            f"it is bound by the processor, {ingest.cpu_seconds:.0f} CPU seconds on cores that "
            "it shares with the Kafka broker of the test. Most of it is reading JSON, which is done once for "
            "all tables; more cores would help",
        )  # fmt: skip
        told = "so" if ingest.exact else "not so"
        yield Claim("ingest: every record once", ingest.exact, "==", True, told, asserted=True)
    yield from _accuracy({one.method: one for one in of(Accuracy, figures)})


def _beside_duckdb(ours: Cost | None, theirs: Cost | None, cause: str) -> Iterator[Claim]:
    if ours is None or theirs is None:
        return
    different = sum(
        not math.isclose(value, theirs.answer[name], rel_tol=1e-6, abs_tol=1e-9)
        for name, value in ours.answer.items()
    )
    yield from _ratio(ours, theirs, f"{ours}: CPU beside DuckDB's", 2.5, cause)
    told = "another" if different else "the same"
    yield Claim(f"{ours}: the same answer as DuckDB", different, "==", 0, told, asserted=True)
    if "paused" in ours.answer:
        ticks, paused, opened = (ours.answer[name] for name in ("ticks", "paused", "open"))
        crossed = 0 < paused < ticks and 0 < opened < ticks - paused
        told = f"{paused:,.0f} of {ticks:,.0f} ticks in PAUSE, {opened:,.0f} in OPEN"
        yield Claim(f"{ours}: limits are really crossed", crossed, "==", True, told, asserted=True)


def _ratio(one: Cost | None, other: Cost | None, what: str, most: float, cause: str = "") -> Iterator[Claim]:
    if one is not None and other is not None:
        ratio = one.cpu / other.cpu
        yield Claim(f"{what} ≤ {most:g} x", ratio, "<=", most, f"{ratio:.2f} x", cause=cause)


def _replay_cause(costs: _Costs, days: int) -> str:
    parts = [costs.get(("spark", work, 2, days)) for work in (REPLAY, READING, CHOOSING, ONE_CLUSTER)]
    whole, reading, chosen, one = (0.0 if part is None else part.cpu for part in parts)
    if parts[3] is None or not all(parts):
        return _HASHING
    return (
        f"{_HASHING}. Of {whole:.1f} CPU seconds {reading:.1f} are reading, "
        f"{max(chosen - reading, 0):.1f} comparing role and status, {max(one - chosen, 0):.1f} grouping by "
        f"tick, and {max(whole - one, 0):.1f} the name; without it, {parts[3].speed:.1f} M samples per CPU "
        "second"
    )


def _accuracy(found: Mapping[str, Accuracy]) -> Iterator[Claim]:
    if not found:
        return
    ours = found[OURS]
    for other in OTHERS:
        ratio = ours.mean_error_ratio / found[other].mean_error_ratio
        yield Claim(f"forecast: mean error < that of {other}", ratio, "<", 1, f"{ratio:.2f} x")
    covered = ours.covered_ratio or 0.0
    name = "forecast: the interval of 80 % holds 70 to 90 %"
    yield Claim(name, min(covered - 0.7, 0.9 - covered), ">=", 0, f"{100 * covered:.0f} %", _INTERVAL)


def tables(figures: Figures) -> Iterator[Table]:
    """All of them; one of which nothing was measured has no rows."""
    yield Table.of(
        "CPU and wall seconds",
        sorted(of(Cost, figures), key=lambda cost: (cost.work, cost.rows, cost.cores, cost.engine)),
        (
            ("work", lambda cost: cost.work),
            ("samples", lambda cost: f"{cost.rows / 1e6:.1f} M"),
            ("engine", lambda cost: {"spark": "Spark", "duckdb": "DuckDB"}[cost.engine]),
            ("cores", lambda cost: str(cost.cores)),
            ("CPU s", lambda cost: f"{cost.cpu:.2f}"),
            ("wall s", lambda cost: f"{cost.wall:.2f}"),
            ("M samples per CPU s", lambda cost: f"{cost.speed:.1f}"),
            ("load before", lambda cost: f"{cost.load:.1f}"),
        ),
    )
    yield Table.of(
        "Ingest",
        of(Ingest, figures),
        (
            ("records", lambda ingest: f"{ingest.records:,}"),
            ("MB", lambda ingest: f"{ingest.bytes / 1e6:,.0f}"),
            ("rows", lambda ingest: f"{ingest.rows:,}"),
            ("s", lambda ingest: f"{ingest.seconds:.0f}"),
            ("CPU s", lambda ingest: f"{ingest.cpu_seconds:.0f}"),
            ("whole command, with the start of Spark, s", lambda ingest: f"{ingest.command_seconds:.0f}"),
            ("load before", lambda ingest: f"{ingest.load:.1f}"),
        ),
    )
    yield _forecasts(of(Accuracy, figures))


def _forecasts(found: Sequence[Accuracy]) -> Table:
    return Table.of(
        "Forecast",
        found,
        (
            ("method", lambda one: one.method),
            ("forecasts", lambda one: f"{one.forecasts:,}"),
            ("mean error", lambda one: f"{100 * one.mean_error_ratio:.2f}"),
            ("median error", lambda one: f"{100 * one.median_error_ratio:.2f}"),
            (
                "inside the interval",
                lambda one: "" if one.covered_ratio is None else f"{100 * one.covered_ratio:.0f} %",
            ),
            ("on day 1 to 7", lambda one: ", ".join(f"{100 * share:.0f}" for share in one.covered_by_day)),
        ),
        "Of the crests of each of up to seven days, 5, 7, 9 and 11 days before the end of generated months; "
        "errors in percent of the capacity.",
    )
