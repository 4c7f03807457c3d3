"""`demo`: a generated month of a cluster, all jobs on it, and the report."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from kquota_pipeline.cli.analysis import example_policies, write_recommendations
from kquota_pipeline.cli.options import SparkOption, fail, say
from kquota_pipeline.cli.results import to_json
from kquota_pipeline.cli.session import command_session
from kquota_pipeline.delta import append, create, read
from kquota_pipeline.generator.fleet import FleetSize, InvalidFleet
from kquota_pipeline.generator.history import generate
from kquota_pipeline.report.model import analyse
from kquota_pipeline.report.page import page
from kquota_pipeline.tables import (
    CLIENTS,
    DECISIONS,
    EXPIRY,
    GROUPS,
    OPERATORS,
    REFUSALS,
    TOPICS,
    USAGE,
    Tables,
)

_GROUPS = {"web": ["CN=web", "CN=app"], "observability": ["CN=telegraf", "CN=shipper", "CN=legacy"]}


def demo(
    to: Annotated[
        Path, typer.Option("--to", help="Folder to make: tables, report, recommended limits.")
    ] = Path("kquota-pipeline-demo"),
    days: Annotated[int, typer.Option("--days", min=14, max=60, help="Days of history.")] = 30,
    brokers: Annotated[int, typer.Option("--brokers", min=5, max=60, help="Brokers of the cluster.")] = 9,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed makes the same cluster.")] = 7,
    spark: SparkOption = None,
) -> None:
    """Make a month of a cluster's history, run all jobs on it, and write the report."""
    if to.exists():
        fail(f"{to} is there already; name a folder to make with --to")
    begun = time.monotonic()

    def progress(message: str) -> None:
        say(f"{time.monotonic() - begun:5.0f} s  {message}")

    try:
        size = FleetSize(seed=seed, days=days, brokers=brokers, interval_seconds=300)
    except InvalidFleet as error:
        fail(str(error))
    progress("starting Spark")
    session = command_session("demo", spark)
    progress(f"making {days} days of {brokers} brokers: {size.samples:,} samples of volumes")
    made = generate(session, size)
    to.mkdir(parents=True)
    tables = Tables(f"file:{to.resolve()}/tables")
    stored = {}
    # Tasks carry the rows that were made, and Spark warns of their size.
    session.sparkContext.setLogLevel("ERROR")
    for table in (USAGE, DECISIONS, CLIENTS, OPERATORS, TOPICS, EXPIRY):
        create(session, tables, table)
        append(getattr(made, table.name), tables, table)
        stored[table.name] = read(session, tables, table)
    for table in (REFUSALS, GROUPS):  # no client is refused there, and there are no groups
        create(session, tables, table)
    assert made.rates is not None
    made.rates.write.parquet(f"{to.resolve()}/topic-rates")
    rates = session.read.parquet(f"{to.resolve()}/topic-rates")
    session.sparkContext.setLogLevel("WARN")
    history = replace(made, **stored, rates=rates)
    analysis = analyse(history, example_policies(), _GROUPS, now=datetime.now(UTC), progress=progress)
    report = to / "report.html"
    report.write_text(page(analysis.document), "utf-8")
    (to / "report.json").write_text(to_json(analysis.document) + "\n", "utf-8")
    for command in write_recommendations(analysis, to / "recommended-limits"):
        typer.echo(command)
    progress(f"done: open {report}")
