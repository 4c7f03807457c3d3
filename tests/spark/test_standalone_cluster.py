"""On a real Spark cluster, a master and two workers on loopback: every command by spark-submit, compared with
the same command on this machine.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

from bench.pipeline.standalone import (
    StandaloneCluster,
    document,
    environment,
    standalone_cluster,
    submitted,
)
from kquota_pipeline import delta
from kquota_pipeline.cli.main import COMMANDS
from kquota_pipeline.generator.fleet import FleetSize
from kquota_pipeline.generator.history import generate
from kquota_pipeline.maintain.derived import ALL_DERIVED
from kquota_pipeline.tables import ALL, FROM_HISTORY, MAINTAINED, RECORDS, Table, Tables
from tests.spark.ingest.history import History
from tests.spark.ingest.process import ingest_arguments

PATIENCE_SECONDS = 1200.0
SETTINGS = {"spark.executor.memory": "768m", "spark.sql.shuffle.partitions": "2"}
SIZE = FleetSize(brokers=5, volumes_per_broker=2, days=14, interval_seconds=1800)
# Some days are closed, so that readers find days in derived tables, and days that they compute themselves.
CLOSED_DAYS = 2
# The history is of a past year, and has to stay.
KEPT = ("--retention-days=36500", "--raw-retention-days=36500")
WRITERS = {
    "ingest": "test_records_of_kafka_give_the_same_tables",
    "reparse": "test_records_of_kafka_give_the_same_tables",
    "maintain": "maintained",
}
"""Commands that change the tables, with the function here that compares these."""
READERS = {
    "forecast": ("", "--accuracy"),
    "skew": ("", "--moves"),
    "accounting": ("", "--groups={folder}/groups.yml", "--topics={rates}", "--quota-groups", "--refused"),
    "report": ("--tick-seconds=3600 --groups={folder}/groups.yml --topics={rates}",),
    "chargeback": ("--from=2026-10-02 --to=2026-10-13 --by=client",),
    "backtest": (
        "--tick-seconds=3600",
        "--as-recorded --tick-seconds=3600",
    ),
    "recommend": ("--to={folder}/limits --no-fence --tick-seconds=3600",),
    "whatif": (
        "--load=CN=web=1.5 --retention=logs=1.2 --without=2 --tick-seconds=3600",
        "--policies={folder}/policies.yml --tick-seconds=3600",
    ),
}
"""Commands that read them, with the options of each answer that is compared."""
# For emergencies of an ingest, which no cluster changes; what is compared as a command of its own; and the
# form in which answers are compared.
OTHER_FLAGS = {"--adopt", "--accept-gaps", "--maintain", "--json"}
READINGS = [f"{command} {options}".strip() for command, some in READERS.items() for options in some]
POLICIES = [
    {"name": name, "limits": {kind: {"type": "MinFreePercentage", "level": level} for kind, level in limits}}
    for name, limits in (
        ("early", (("hard", 10), ("soft", 30))),
        ("late", (("hard", 4), ("soft", 12))),
    )
]

# An executor's own Python reports where it runs and what it imports. The environment knows the
# package by its sources as well; the archive comes first.
WHERE_IT_RUNS = """
import sys
from kquota_pipeline.session import start_session
spark = start_session("where", {"spark.master": sys.argv[1], "spark.cores.max": "2"})
print("PARTITIONS", spark.conf.get("spark.sql.shuffle.partitions"))

def where(batches):
    import os, kquota.policy.decide, kquota_pipeline, pyarrow as pa
    import time
    for batch in batches:
        time.sleep(2)
        yield pa.RecordBatch.from_pydict({"place": [kquota_pipeline.__file__ + " " + os.getcwd()]})

for row in spark.range(0, 4, 1, 4).mapInArrow(where, "place string").distinct().collect():
    print("PLACE", row["place"])
spark.stop()
"""


@dataclass(frozen=True)
class Submitting:
    """Runs commands with spark-submit on a cluster, as an operator with a cluster would."""

    begin: tuple[str, ...]

    def __call__(self, *arguments: str) -> str:
        return run([*self.begin, *arguments])


@dataclass(frozen=True)
class Place:
    """A generated history: in tables that the cluster maintains, and in the same ones maintained here."""

    folder: Path
    there: Tables
    here: Tables

    def arguments(self, options: str) -> list[str]:
        return options.format(folder=self.folder, rates=f"file:{self.folder}/rates").split()


def run(command: list[str]) -> str:
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=PATIENCE_SECONDS, env=environment()
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def run_here(*arguments: str) -> str:
    settings = ("--spark=spark.master=local[2]", "--spark=spark.sql.shuffle.partitions=2")
    return run([sys.executable, "-m", "kquota_pipeline", *arguments, *settings])


def last_line(said: str) -> str:
    """Return the summary of a command; before it are spark-submit's progress and Delta's own lines."""
    return said.splitlines()[-1]


def alike(one: Any, other: Any) -> bool:
    """Whether two answers are the same, but for the last digits of sums, which depend on the order."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(value, other[name]) for name, value in one.items())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-7, abs_tol=1e-7)
    return bool(one == other)


def in_turn(answer: Any) -> Any:
    """Return an answer with its lists of objects in one order: of equal ones, any may come first."""
    if isinstance(answer, dict):
        return {name: in_turn(value) for name, value in answer.items()}
    if isinstance(answer, list):
        inside = [in_turn(one) for one in answer]
        objects = bool(inside) and all(isinstance(one, dict) for one in inside)
        return sorted(inside, key=lambda one: json.dumps(_whole(one))) if objects else inside
    return answer


def _whole(answer: Any) -> Any:
    """Return an answer without fractions."""
    if isinstance(answer, dict):
        return {name: _whole(value) for name, value in answer.items() if not isinstance(value, float)}
    return [_whole(one) for one in answer] if isinstance(answer, list) else str(answer)


def same_rows(spark: SparkSession, here: Tables, there: Tables, table: Table) -> int:
    """Compare the rows of two tables, and return how many there are."""

    def rows(tables: Tables) -> list[tuple[Any, ...]]:
        frame: DataFrame = delta.read(spark, tables, table)
        if table is MAINTAINED:  # names of files differ, and times
            frame = frame.select("table_name", "day", "rows", "duplicates")
        if table is RECORDS:
            frame = frame.drop("ingested_at")
        order = [name for name in table.identity if name in frame.columns]
        order += [name for name in frame.columns if name not in order]
        return [tuple(row) for row in frame.orderBy(*order).collect()]

    one, other = rows(here), rows(there)
    assert len(one) == len(other), table.name
    different = [pair for pair in zip(one, other, strict=True) if not alike(*pair)]
    assert not different, f"{table.name}: {len(different)} rows differ: {different[:3]}"
    return len(one)


def test_every_command_that_takes_tables_is_compared_with_every_answer_that_it_has() -> None:
    whole = typer.main.get_command(COMMANDS.application())
    for name, command in whole.commands.items():  # type: ignore[attr-defined]
        options = {option for parameter in command.params for option in parameter.opts}
        assert ("--tables" in options) == (name in {*WRITERS, *READERS}), name
        flags = {option for one in command.params for option in one.opts if getattr(one, "is_flag", False)}
        named = " ".join(READERS.get(name, ())).split()
        assert flags - OTHER_FLAGS - {"--help"} <= set(named) or "--tables" not in options, name
    assert all(callable(globals()[compared]) for compared in WRITERS.values())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with standalone_cluster(tmp_path_factory.mktemp("spark-cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def submit(cluster: StandaloneCluster, tmp_path_factory: pytest.TempPathFactory) -> Submitting:
    return Submitting(tuple(submitted(cluster.url, tmp_path_factory.mktemp("archive"), SETTINGS)))


@pytest.fixture(scope="module")
def maintained(spark: SparkSession, submit: Submitting, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Tables with a generated history, maintained by spark-submit on the cluster and by a command here, which
    have to come to the same rows.
    """
    folder = tmp_path_factory.mktemp("place")
    place = Place(folder, Tables(f"file:{folder}/there"), Tables(f"file:{folder}/here"))
    made = generate(spark, SIZE)
    for table in FROM_HISTORY:
        delta.create(spark, place.there, table)
        if (rows := getattr(made, table.name, None)) is not None:
            delta.append(rows, place.there, table)
    assert made.rates is not None
    made.rates.write.parquet(f"{folder}/rates")
    (folder / "policies.yml").write_text(yaml.safe_dump({"policies": POLICIES}), "utf-8")
    (folder / "groups.yml").write_text(yaml.safe_dump({"web": ["CN=web", "CN=app"]}), "utf-8")
    shutil.copytree(folder / "there", folder / "here")
    age = datetime.now(UTC) - SIZE.start - timedelta(days=CLOSED_DAYS + 0.5)
    upkeep = (*KEPT, f"--closed-after-hours={age / timedelta(hours=1)}")
    there = last_line(submit("maintain", f"--tables={place.there.root}", *upkeep))
    assert there == last_line(run_here("maintain", f"--tables={place.here.root}", *upkeep))
    for derived in ("ten_minutes", "hours", "looks", "holdings"):
        assert f"{derived} of {CLOSED_DAYS}" in there
    counted = {
        table.name: same_rows(spark, place.here, place.there, table) for table in ALL if table is not RECORDS
    }
    assert all(counted[name] > 0 for name in ("usage", *(one.table.name for one in ALL_DERIVED)))
    return place


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("reading", READINGS)
def test_a_command_prints_the_same_by_spark_submit(
    spark: SparkSession, submit: Submitting, maintained: Place, reading: str
) -> None:
    command, _, options = reading.partition(" ")
    arguments = [command, f"--tables={maintained.there.root}", *maintained.arguments(options), "--json"]
    there = document(submit(*arguments))
    done = CliRunner().invoke(COMMANDS.application(command), arguments)
    assert done.exit_code == 0, f"{done.output}{done.exception!r}"
    here = json.loads(done.stdout)
    if command == "report":
        assert there.pop("made_at") <= here.pop("made_at")
    if reading not in ("accounting --quota-groups", "accounting --refused"):  # none was refused there
        assert here
    assert alike(in_turn(here), in_turn(there)), f"here:\n{here}\nby spark-submit:\n{there}"


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_executors_on_both_workers_import_the_archive(tmp_path: Path, cluster: StandaloneCluster) -> None:
    script = tmp_path / "where.py"
    script.write_text(WHERE_IT_RUNS)
    said = run([sys.executable, str(script), cluster.url])
    assert "PARTITIONS 200" in said, "and not those of this machine"
    places = re.findall(r"PLACE (\S+) (\S+)", said)
    assert {Path(module).parents[1].name for module, _ in places} == {"kquota_pipeline.zip"}
    assert {Path(folder).parents[1] for _, folder in places} == {cluster.work(1), cluster.work(2)}


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_records_of_kafka_give_the_same_tables(
    spark: SparkSession, submit: Submitting, tmp_path: Path, history: Callable[..., History]
) -> None:
    topic = history(partitions=2, volumes=3)
    for kind in ("usage", "decision", "clients", "operator", "topics", "expiry"):
        topic.send(kind, range(100))
    topic.send("usage", range(50))
    topic.send_raw([b"{", None])
    places = {name: tmp_path / name for name in ("here", "there")}
    here, there = (Tables(f"file:{folder}/tables") for folder in places.values())
    made = {}
    for name, folder in places.items():
        folder.mkdir()
        ingest = [part for part in ingest_arguments(topic, folder) if not part.startswith("--spark=")]
        again = ["reparse", *ingest[1:3], "--from=2024-01-01", "--to=2999-12-31"]
        upkeep = ["maintain", ingest[1], *KEPT]
        command = submit if name == "there" else run_here
        said = [command(*one) for one in (ingest, again, upkeep)]
        made[name] = [re.sub(r"[\d.]+ s\b|\(.*?\)", "", last_line(text)) for text in said]
    assert made["here"] == made["there"]
    for table in ALL:
        assert same_rows(spark, here, there, table) > 0, table.name
