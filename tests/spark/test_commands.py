"""The command line: each command that reads the tables, on a generated history, and its JSON."""

from __future__ import annotations

import io
import json
import math
import re
import shlex
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer
import yaml
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from typer.testing import CliRunner, Result

from kquota_pipeline.cli.main import COMMANDS
from kquota_pipeline.cli.options import day_named
from kquota_pipeline.cli.reader import reader, report_history
from kquota_pipeline.cli.results import table_of
from kquota_pipeline.delta import append, create, read
from kquota_pipeline.forecast.series import hourly
from kquota_pipeline.generator.fleet import TOPICS as GENERATED
from kquota_pipeline.generator.fleet import FleetSize
from kquota_pipeline.generator.history import generate
from kquota_pipeline.maintain.days import files_of_days
from kquota_pipeline.maintain.derived import HOLDING_DAYS, HOUR_DAYS, WRITING_DAYS, derive
from kquota_pipeline.report.newest import reaches, without_samples
from kquota_pipeline.tables import (
    ALL,
    CLIENTS,
    DECISIONS,
    EXPIRY,
    GROUPS,
    MAINTAINED,
    OPERATORS,
    REFUSALS,
    TOPICS,
    USAGE,
    Tables,
)

RELIEF_OF_DEMO = Path(__file__).parents[2] / "schemas/samples/relief/valid/of-the-demonstration.json"
SIZE = FleetSize(brokers=5, volumes_per_broker=2, days=14, interval_seconds=1800)
# One of them is decommissioned on the way, and of no interest any more.
BROKERS = SIZE.brokers - 1


@pytest.fixture(scope="module")
def month(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Tables with a generated history; no client was refused there, and there are no groups."""
    tables = Tables(f"file:{tmp_path_factory.mktemp('month')}/tables")
    made = generate(spark, SIZE)
    for frame, table in (
        (made.usage, USAGE),
        (made.decisions, DECISIONS),
        (made.clients, CLIENTS),
        (made.operators, OPERATORS),
        (made.topics, TOPICS),
    ):
        create(spark, tables, table)
        append(frame, tables, table)
    for table in (REFUSALS, GROUPS, EXPIRY):
        create(spark, tables, table)
    return tables


def run(*arguments: str) -> Result:
    """Run a command in this process, with the session of the tests."""
    return CliRunner().invoke(COMMANDS.application(arguments[0]), [*arguments])


def rows(month: Tables, *arguments: str) -> Any:
    """Return the document that a command prints with --json, on standard output alone."""
    done = run(arguments[0], f"--tables={month.root}", *arguments[1:], "--json")
    assert done.exit_code == 0, f"{done.output}{done.exception!r}"
    return json.loads(done.stdout)


def test_each_example_is_a_call_that_its_command_takes() -> None:
    for purpose in COMMANDS.purposes:
        for name, one in purpose.commands.items():
            program, named, *arguments = shlex.split(one.example)
            assert (program, named) == ("kquota-pipeline", name)
            command: Any = typer.main.get_command(COMMANDS.application(name))
            command.commands[name].make_context(name, arguments)


@pytest.mark.parametrize(
    ("arguments", "count", "column"),
    [
        ("forecast", BROKERS * SIZE.volumes_per_broker, "soft_outlook"),
        ("forecast --accuracy", 4, "mean_error_ratio"),
        ("skew", BROKERS, "broker_id"),
        ("skew --moves", 1, "cluster_id"),
        ("accounting", None, "bytes"),
        ("accounting --quota-groups", 0, None),
        ("accounting --refused", 0, None),
        pytest.param("backtest --tick-seconds=3600", None, "policy", marks=pytest.mark.long),
    ],
)
def test_every_command_prints_its_rows_as_json(
    month: Tables, arguments: str, count: int | None, column: str | None
) -> None:
    found = rows(month, *arguments.split())
    assert count is None or len(found) == count
    if column is not None:
        assert found != []
        assert all(column in row for row in found)


@pytest.mark.long
def test_recommended_limits_are_the_same_in_files_and_in_json(month: Tables, tmp_path: Path) -> None:
    (cluster,) = rows(month, "recommend", f"--to={tmp_path}/limits", "--tick-seconds=1800")
    assert cluster["recommendation"]["problem"] is None
    for broker, limits in cluster["recommendation"]["limits"].items():
        written = yaml.safe_load((tmp_path / f"limits/broker-{broker}.yml").read_text("utf-8"))
        assert written == {"kquota_agent_limits": limits}
    # The last one has been decommissioned.
    assert set(cluster["recommendation"]["limits"]) == {str(n) for n in range(1, SIZE.brokers)}
    assert len(list((tmp_path / "limits").iterdir())) == SIZE.brokers - 1
    assert len(cluster["quota_commands"]) == len(cluster["quotas"])


def test_a_charge_is_the_same_on_paper_and_adds_up_to_the_bytes_of_the_volumes(
    spark: SparkSession, month: Tables, tmp_path: Path
) -> None:
    csv, parquet = tmp_path / "days.csv", tmp_path / "days.parquet"
    # The history begins a day later: growth is not known.
    days = ("--from=2026-09-30", "--to=2026-10-12")
    found = rows(month, "chargeback", *days, f"--csv={csv}", f"--parquet={parquet}")
    hours = hourly(read(spark, month, USAGE).where("day between '2026-09-30' and '2026-10-12'"))
    (whole,) = hours.agg((F.sum("mean_bytes") / 24).alias("byte_days")).collect()
    assert sum(row["byte_days"] for row in found) == pytest.approx(whole.byte_days, rel=1e-9)
    held = {row["user"]: row["byte_days"] for row in found}
    assert None in held
    assert held["CN=web"] > 0
    written = pd.read_parquet(parquet)
    assert written.groupby("user")["byte_days"].sum()["CN=web"] == pytest.approx(held["CN=web"])
    named = pd.read_csv(csv).groupby("user")["byte_days"].sum()
    assert named["unattributed"] == pytest.approx(held[None])
    assert set(written["topic"].dropna()) == {topic.name for topic in GENERATED}
    assert {row["growth_bytes"] for row in found if row["byte_days"]} == {None}
    for file in (written, pd.read_csv(csv)):
        holds = file["byte_days"] > 0
        assert file.loc[holds, "growth_bytes"].isna().all()
        assert file.loc[holds, "held_bytes"].notna().all()


@pytest.mark.long
def test_a_report_reads_samples_of_open_days_alone(spark: SparkSession, month: Tables) -> None:
    days = sorted(files_of_days(spark, month, USAGE))
    create(spark, month, MAINTAINED)
    for derived in (HOUR_DAYS, HOLDING_DAYS, WRITING_DAYS):
        create(spark, month, derived.table)
        derive(spark, month, derived, {}, lambda day: day < days[-1], datetime.now(UTC))
    history = report_history(reader(month.root, None, None))
    recent = without_samples(history, reaches(history.by_hour))
    frames = {"usage": recent.usage, "hours": recent.by_hour, "held": recent.held, "written": recent.written}
    for name, frame in frames.items():
        read_days = {
            date.fromisoformat(found[1])
            for file in frame.inputFiles()
            if (found := re.search(r"/(?:usage|clients|topics)/day=([0-9-]+)/", file))
        }
        assert read_days == {days[-1]}, f"{name} of {len(days)} days"


def test_the_tables_are_described_for_programs() -> None:
    described = {table["name"]: table for table in json.loads(run("tables", "--json").stdout)}
    assert set(described) == {table.name for table in ALL}
    assert [column["name"] for column in described["usage"]["columns"]] == USAGE.schema.fieldNames()


def test_a_table_that_no_records_have_rows_for_is_not_made_again() -> None:
    done = run("reparse", "--tables=file:/x", "--checkpoint=file:/y", "--from=1d", "--table=ticks")
    assert done.exit_code == 2
    assert "'ticks' is none of" in done.stderr


def test_people_get_a_table(month: Tables) -> None:
    done = run("forecast", f"--tables={month.root}", "--since=2026-10-03")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert "soft limit on" in lines[2], "nothing is folded where it is no terminal"
    assert len([line for line in lines if "/dev/sd" in line]) == BROKERS * SIZE.volumes_per_broker
    assert all(line.rstrip().endswith("14 Oct 23h") for line in lines if "/dev/sd" in line)


def test_rows_of_several_clusters_say_which() -> None:
    rows = [{"cluster_id": name, "bytes": 1} for name in ("one", "other")]
    table = table_of(("cluster_id", "bytes"), rows, "Clients", Console(width=80))
    assert str(table.title) == "Clients"
    assert [column.header for column in table.columns] == ["cluster id", "bytes"]


def test_people_read_figures_with_units_and_no_notation_of_programs() -> None:
    row = {
        "held_bytes": 3.195e12,
        "lost_bytes": None,
        "bytes": 1_797_032_322_567,
        "used_ratio": 0.8985,
        "produce_bytes_per_second": 15_500_000.0,
        "gain_bytes": math.nan,
        "is_changed": True,
        "hours": 4.5,
        "open_seconds": 2_426_400,
        "first_filled_tick": 1_792_000_000,
    }
    table = table_of(tuple(row), [row], "Clients", Console(width=200))
    shown = {column.header: str(next(iter(column.cells))) for column in table.columns}
    assert shown == {
        "held": "3.19\xa0TB", "lost": "", "bytes": "1.8\xa0TB", "used ratio": "89.8\xa0%",
        "produce": "15.5\xa0MB/s", "gain": "not known", "is changed": "yes", "hours": "4.5",
        "open": "28.1\xa0d", "first filled": "2026-10-14 17:46",
    }  # fmt: skip


def test_an_option_names_a_day_or_a_number_of_days_ago() -> None:
    today = date(2026, 3, 1)
    assert day_named("2026-02-01", today, "--since") == date(2026, 2, 1)
    assert day_named("30d", today, "--since") == date(2026, 1, 30)


@pytest.mark.parametrize("text", ["yesterday", "d", "2026-02-30", "99999999d"])
def test_what_is_no_day_is_named(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=f"'{text}' is neither YYYY-MM-DD nor 30d"):
        day_named(text, date(2026, 3, 1), "--since")


@pytest.mark.long
def test_a_new_user_has_something_to_look_at(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = run("demo", f"--to={folder}", "--days=14", "--brokers=5")
    assert done.exit_code == 0, f"{done.output}{done.exception!r}"
    assert f"done: open {folder}/report.html" in done.stderr
    assert "forecasting every volume" in done.stderr, "it says how it goes"
    assert (folder / "report.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    (cluster,) = json.loads((folder / "report.json").read_text("utf-8"))["clusters"]
    assert len(cluster["forecasts"]) == 4 * 3
    assert len(list((folder / "recommended-limits").iterdir())) == 4, "one has been decommissioned"
    options = (
        f"--tables=file:{folder}/tables",
        f"--relief={RELIEF_OF_DEMO}",
        "--tick-seconds=1800",
        "--json",
    )
    done = run("whatif", *options)
    assert done.exit_code == 0, done.output
    before, after = (
        {(row["broker_id"], row["volume_name"]): row for row in json.loads(done.stdout)["volumes"]
         if row["is_changed"] is so}
        for so in (False, True)
    )  # fmt: skip
    assert before.keys() == after.keys()
    assert after[3, "/dev/sdd1"]["crest_bytes"] < before[3, "/dev/sdd1"]["crest_bytes"]
    again = run("demo", f"--to={folder}")
    assert again.exit_code == 1
    assert f"{folder} is there already" in again.stderr


@pytest.mark.parametrize(
    ("given", "shown"),
    [("x[/b]", "x[/b]"), ("[red]x", "[red]x"), ("a\x1b[2Jb", "a\ufffd[2Jb"), ("1\xa0GiB", "1\xa0GiB")],
)
def test_a_name_that_a_client_chose_is_shown_as_text_and_orders_no_terminal(given, shown):
    console = Console(width=200, record=True, file=io.StringIO())
    rows = [{"cluster_id": cluster, "client_id": given} for cluster in ("one", "other")]
    console.print(table_of(("cluster_id", "client_id"), rows, given, console))
    lines = [line.strip() for line in console.export_text().splitlines()]
    assert lines[0] == shown
    assert [line.split(" ", 1)[1].strip() for line in lines if line.startswith(("one", "other"))] == [
        shown
    ] * 2
