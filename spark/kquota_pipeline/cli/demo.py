"""`demo`: a generated month of a cluster, and its report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import typer
from pyspark.sql import DataFrame, SparkSession

from kquota_pipeline.cli.analysis import example_policies, write_recommendations
from kquota_pipeline.cli.options import SparkOption, fail, say
from kquota_pipeline.cli.results import to_json
from kquota_pipeline.cli.session import command_session
from kquota_pipeline.delta import append, create, read
from kquota_pipeline.generator.fleet import FleetSize, InvalidFleet
from kquota_pipeline.generator.history import make_rows
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
# Each task has a file of every day open. Of row groups of the usual 128 MiB, all together would not fit into
# memory; no file becomes as large as one of these.
_SMALL_GROUPS = f"spark.hadoop.parquet.block.size={4 * 1024 * 1024}"
_ROWS_PER_FILE = 50_000
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
        session = command_session("demo", [_SHORT_RUN, _SMALL_GROUPS, *(spark or [])])
        made = rows.result()
    progress("writing them to tables")
    to.mkdir(parents=True)
    history = _stored(session, made, to.resolve())
    analysis = analyse(history, example_policies(), _GROUPS, now=datetime.now(UTC), progress=progress)
    report = to / "report.html"
    report.write_text(page(analysis.document), "utf-8")
    (to / "report.json").write_text(to_json(analysis.document) + "\n", "utf-8")
    for command in write_recommendations(analysis, to / "recommended-limits"):
        typer.echo(command)
    progress(f"done: open {report}")


def _stored(session: SparkSession, made: Mapping[str, pa.Table], place: Path) -> History:
    """Write a history to tables, and return it as it is read from there."""
    tables = Tables(f"file:{place}/tables")
    rates = place / "topic-rates"
    _write(made["rates"], rates)
    # Spark reads the rows from files. If tasks carried them, it would warn of their size. Executors of a
    # cluster have this folder, as they write the tables there.
    with TemporaryDirectory(dir=place) as name:

        def store(table: Table) -> DataFrame:
            create(session, tables, table)
            if table.name in made:
                files = Path(name) / table.name
                _write(made[table.name], files)
                append(session.read.parquet(f"file:{files}"), tables, table)
            return read(session, tables, table)

        with ThreadPoolExecutor(_WRITERS) as writers:
            stored = dict(zip([table.name for table in _TABLES], writers.map(store, _TABLES), strict=True))
    known = {name: frame for name, frame in stored.items() if name in made}
    history = History(**known, rates=session.read.parquet(f"file:{rates}"))
    # `maintain` would have derived them; here several jobs read them.
    ten_minutes = history.by_ten_minutes.cache()
    return replace(history, ten_minutes=ten_minutes, steps=ten_minutes)


def _write(rows: pa.Table, folder: Path) -> None:
    """Write rows as files of some thousand, so that several tasks can read them."""
    folder.mkdir()
    for first in range(0, max(1, rows.num_rows), _ROWS_PER_FILE):
        pq.write_table(rows.slice(first, _ROWS_PER_FILE), folder / f"{first:08d}.parquet")
