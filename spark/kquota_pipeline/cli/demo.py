"""`demo`: a generated month of a cluster, all jobs on it, and the report."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import DataFrame, SparkSession

from kquota_pipeline.cli.analysis import example_policies, write_recommendations
from kquota_pipeline.cli.options import SparkOption, fail, say
from kquota_pipeline.cli.results import to_json
from kquota_pipeline.cli.session import command_session
from kquota_pipeline.delta import append, create, read
from kquota_pipeline.generator.fleet import FleetSize, InvalidFleet
from kquota_pipeline.generator.history import make_rows, with_spark
from kquota_pipeline.history import History
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
    Table,
    Tables,
)

# A run is too short to earn back what Java's thorough compiler and parallel collector cost. With the quick
# compiler alone, Java keeps too little room for Spark's code if it is not asked for more.
_SHORT_RUN = (
    "spark.driver.defaultJavaOptions=-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
)
# No client is refused there, and there are no groups: these two stay empty.
_TABLES = (CLIENTS, USAGE, TOPICS, DECISIONS, EXPIRY, OPERATORS, REFUSALS, GROUPS)
# Tables are written side by side: while one is planned or committed, Spark's tasks write another.
_WRITERS = 4
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
    progress(
        f"starting Spark, and making {days} days of {brokers} brokers: {size.samples:,} samples of volumes"
    )
    with ThreadPoolExecutor(1) as other:
        rows = other.submit(make_rows, size)
        session = command_session("demo", [_SHORT_RUN, *(spark or [])])
        made = with_spark(session, rows.result())
    progress("writing them to tables")
    to.mkdir(parents=True)
    history = _stored(session, made, f"file:{to.resolve()}")
    analysis = analyse(history, example_policies(), _GROUPS, now=datetime.now(UTC), progress=progress)
    report = to / "report.html"
    report.write_text(page(analysis.document), "utf-8")
    (to / "report.json").write_text(to_json(analysis.document) + "\n", "utf-8")
    for command in write_recommendations(analysis, to / "recommended-limits"):
        typer.echo(command)
    progress(f"done: open {report}")


def _stored(session: SparkSession, made: History, place: str) -> History:
    """Write a history to tables, and return it as it is read from there."""
    tables = Tables(f"{place}/tables")
    rates = made.rates
    assert rates is not None

    def store(table: Table) -> DataFrame:
        create(session, tables, table)
        rows = getattr(made, table.name, None)
        if rows is not None:
            append(rows, tables, table)
        return read(session, tables, table)

    # Tasks carry the rows that were made, and Spark warns of their size.
    session.sparkContext.setLogLevel("ERROR")
    with ThreadPoolExecutor(_WRITERS) as writers:
        rates_written = writers.submit(rates.write.parquet, f"{place}/topic-rates")
        stored = dict(zip([table.name for table in _TABLES], writers.map(store, _TABLES), strict=True))
        rates_written.result()
    session.sparkContext.setLogLevel("WARN")
    known = {name: frame for name, frame in stored.items() if getattr(made, name, None) is not None}
    return replace(made, **known, rates=session.read.parquet(f"{place}/topic-rates"))
