"""The figures as docs/bench-spark.md, with what was aimed at and whether it was reached. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bench.pipeline.claims import Verdict
from bench.pipeline.foretold import Accuracy
from bench.pipeline.plan import Profile
from bench.pipeline.results import Figure, Saved

_HEAD = """\
# What the pipeline costs

<!-- Written by `make bench-spark`. Do not edit. -->

{brokers:,} brokers with {volumes} volumes each, a sample per 30 s, in Parquet files as the tables have them:
sorted by broker, volume and time, a folder for each day. Four volumes go over their limits again and again.
Spark runs the pipeline's own functions, DuckDB the same work in SQL over the same files in the same run, and
both have to come to the same answer. CPU seconds are those of the whole engine; figures are medians of
{repeats} runs, after two on one day.

- **tick replay**: the policy's state at every tick of the cluster
- **32 policies**: the same for 32 policies of one limit type, without latches, by the extremes of each tick
- **regression**: the least-squares line of every volume
- **its columns read**, **its samples chosen**, **replay of one cluster**: parts of the replay, to see what
  holds it: the figures read and nothing grouped; the same of voting volumes (two texts compared); and these
  grouped by tick alone, without the cluster's name
- **ingest**: `kquota-pipeline ingest` of a history on a Kafka over TLS, {listed} volumes in a record; 1 % of
  the records come twice, 0.1 % are malformed, and the tables are counted afterwards
"""
_INGEST_VOLUMES = 8


def page(
    profile: Profile,
    saved: Sequence[Saved],
    verdicts: Sequence[Verdict],
    missing: Sequence[str],
    repeats: int,
    why: Sequence[str] = (),
) -> str:
    """Return the whole page."""
    fleet = profile.fleet
    head = _HEAD.format(brokers=fleet.brokers, volumes=fleet.volumes, repeats=repeats, listed=_INGEST_VOLUMES)
    return "\n".join(
        [
            head,
            *_measured(saved, missing),
            *_aims(verdicts),
            *_causes(why),
            *_costs(saved),
            *_ingests(saved),
            *_forecasts(saved),
        ]
    )


def _measured(saved: Sequence[Saved], missing: Sequence[str]) -> list[str]:
    days = sorted({step.measured_at[:10] for step in saved})
    minutes = sum(step.seconds for step in saved) / 60
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    lines = [
        f"Measured by `make bench-spark` on {when}, in {minutes:.0f} minutes, the making of the samples "
        f"aside. {'; '.join(sorted({step.machine for step in saved}))}.",
        "",
    ]
    if missing:
        lines += [f"Not yet measured: {', '.join(missing)}.", ""]
    return lines


def _aims(verdicts: Sequence[Verdict]) -> list[str]:
    lines = ["An aim that is missed fails nothing. Another answer than DuckDB's, or a wrong count, does."]
    lines += ["", "| aim | found | reached |", "|---|---|---|"]
    return [*lines, *(f"| {v.aim} | {v.found} | {'yes' if v.holds else '**no**'} |" for v in verdicts), ""]


def _causes(why: Sequence[str]) -> list[str]:
    if not why:
        return []
    return ["What is missed, and what we take for the cause:", "", *(f"- {cause}" for cause in why), ""]


def _costs(saved: Sequence[Saved]) -> list[str]:
    lines = ["| work | samples | engine | cores | CPU s | wall s | M samples per CPU s | load before |"]
    lines += ["|---|--:|---|--:|--:|--:|--:|--:|"]
    rows = [(figure, step.load) for step in saved for figure in step.figures]
    if not rows:
        return []
    rows.sort(key=lambda row: (row[0].work, row[0].rows, row[0].cores, row[0].engine))
    return [*lines, *(_row(figure, load) for figure, load in rows), ""]


def _row(figure: Figure, load: float) -> str:
    speed = figure.rows / figure.cpu / 1e6
    engine = {"spark": "Spark", "duckdb": "DuckDB"}[figure.engine]
    return (
        f"| {figure.work} | {figure.rows / 1e6:.1f} M | {engine} | {figure.cores} | {figure.cpu:.2f} | "
        f"{figure.wall:.2f} | {speed:.1f} | {load:.1f} |"
    )


def _ingests(saved: Sequence[Saved]) -> list[str]:
    lines = []
    for step in saved:
        if step.ingest is None:
            continue
        found = step.ingest
        lines += [
            f"The ingest took {found['seconds']:.0f} s for {found['records']:,.0f} records of "
            f"{found['bytes'] / 1e6:,.0f} MB, which are {found['rows']:,.0f} rows, and "
            f"{found['cpu_seconds']:.0f} CPU seconds; the whole command, with the start of Spark, took "
            f"{found['command_seconds']:.0f} s. The load before it was {step.load:.1f}.",
            "",
        ]
    return lines


def _forecasts(saved: Sequence[Saved]) -> list[str]:
    lines = []
    for step in saved:
        if not step.accuracy:
            continue
        lines += [
            "The forecast, of the crests of each of up to seven days, 5, 7, 9 and 11 days before the end of "
            "generated months; errors in percent of the capacity:",
            "",
            "| method | forecasts | mean error | median error | inside the interval | on day 1 to 7 |",
            "|---|--:|--:|--:|--:|---|",
            *(_accuracy(one) for one in step.accuracy),
            "",
        ]
    return lines


def _accuracy(one: Accuracy) -> str:
    covered = "" if one["covered_ratio"] is None else f"{100 * one['covered_ratio']:.0f} %"
    by_day = ", ".join(f"{100 * share:.0f}" for share in one["covered_by_day"])
    return (
        f"| {one['method']} | {one['forecasts']:,} | {100 * one['mean_error_ratio']:.2f} | "
        f"{100 * one['median_error_ratio']:.2f} | {covered} | {by_day} |"
    )
