"""`make bench-spark` measures the same work of both engines, and reports the results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from bench.harness.bench import Profile
from bench.harness.claims import Claim
from bench.harness.command import judge
from bench.harness.results import Saved, Store
from bench.pipeline.__main__ import BENCH, measurements
from bench.pipeline.cost import Cost, OnCluster
from bench.pipeline.data import Fleet, make
from bench.pipeline.engines import not_compared, of_one_run
from bench.pipeline.figures import Arrays, claims
from bench.pipeline.origin import origin, rows
from bench.pipeline.work import DUCKDB, SPARK, WORKS, folders, spark_usage

FLEET = Fleet(brokers=4, volumes=2)
ANSWER = {"volumes": 10.0, "slope": 2.0}


def cost(
    engine: str,
    work: str,
    cpu: float,
    *,
    cores: int = 2,
    days: int = 3,
    rows: int = 12_000_000,
    run: str = "2031-03-01T12:00:00+00:00",
) -> Cost:
    return Cost(engine, cores, days, rows, 0.1, work, ANSWER, (cpu, cpu, 9 * cpu), (cpu / cores,) * 3, run)


def judged(*figures: object) -> dict[str, Claim]:
    return {claim.name: claim for claim in claims(figures)}


def test_both_engines_come_to_the_same_answer(spark: SparkSession, tmp_path: Path) -> None:
    make(tmp_path, FLEET, 2)
    files = ", ".join(f"'{folder}/*.parquet'" for folder in folders(tmp_path, 2))
    connection = duckdb.connect()
    for work in WORKS:
        ours = SPARK[work](spark_usage(spark, tmp_path, 2))
        theirs = DUCKDB[work](connection, f"[{files}]")
        assert ours == {name: pytest.approx(value, rel=1e-9) for name, value in theirs.items()}
    counted = connection.execute(f"SELECT count(*) FROM read_parquet([{files}])").fetchone()
    assert counted == (FLEET.rows(2),)


def test_days_that_are_there_are_not_made_again(tmp_path: Path) -> None:
    make(tmp_path, FLEET, 1)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    make(tmp_path, FLEET, 2)
    assert all(path.stat().st_mtime_ns == moment for path, moment in before.items())
    assert len(list(tmp_path.glob("day=*"))) == 2


def test_an_aim_is_judged_by_the_median_and_another_answer_must_not_be() -> None:
    theirs = [cost("duckdb", work, 0.5) for work in WORKS]
    found = judged(
        *(cost("spark", work, 1.0) for work in WORKS),
        *theirs,
        cost("spark", "regression", 1.0, cores=1),
        cost("spark", "regression", 2.2, days=6, rows=24_000_000),
    )
    assert found["regression, 12 M: ≥ 14 M samples per CPU second"].measured == "12.0 M"
    assert found["regression, 12 M: CPU compared with DuckDB's ≤ 1.5 x"].measured == "2.00 x"
    assert not found["regression: CPU of twice the days ≤ 2.1 x"].holds
    assert found["regression: two cores ≥ 1.7 x one"].measured == "2.00 x"
    assert all(claim.holds for claim in found.values() if claim.asserted)
    other = replace(theirs[0], answer={**ANSWER, "slope": 1.0})
    broken = judged(cost("spark", "regression", 1.0), other)
    assert [name for name, claim in broken.items() if claim.asserted and not claim.holds] == [
        "regression, 12 M: the same answer as DuckDB"
    ]


def test_a_ratio_is_judged_only_if_one_run_has_measured_both() -> None:
    one_core = cost("spark", "regression", 1.0, cores=1)
    costs = [cost("spark", "regression", 1.0), cost("spark", "regression", 2.1, days=6, rows=24_000_000)]
    name = "regression: two cores ≥ 1.7 x one"
    assert name in judged(*costs, one_core)
    for run in ("2031-03-02T12:00:00+00:00", ""):
        others = [*costs, replace(one_core, run=run), replace(cost("duckdb", "regression", 1.0), run=run)]
        found = judged(*others)
        against = "regression, 12 M: CPU compared with DuckDB's ≤ 1.5 x"
        assert not {name, against} & set(found)
        assert not_compared(others) == [against, name]
        assert found["regression, 12 M: the same answer as DuckDB"].holds
        assert "regression: CPU of twice the days ≤ 2.1 x" in found
    # Works of one measurement are of one run, whether they name it or not; those of others may not be.
    before = [replace(one, run="") for one in (*costs, one_core)]
    assert not_compared(before) == ["regression: CPU of twice the days ≤ 2.1 x", name]
    assert of_one_run(before[0], replace(before[0], work="hours"))


def test_a_row_says_its_day_and_what_not_all_have_in_common() -> None:
    def saved(day: str, machine: str) -> Saved:
        return Saved("one", f"{day}T10:00:00+00:00", 1.0, 0.1, machine, (cost("spark", "regression", 1.0),))

    old = saved("2031-03-01", "2 cores, Linux 7, Spark 4.0.0, DuckDB 1, Kafka 4.3.0")
    new = saved("2031-04-01", "2 cores, Linux 7, Spark 4.0.5, DuckDB 1, Kafka 4.4.0")
    assert origin(old, [old, new]) == "2031-03-01, Spark 4.0.0, Kafka 4.3.0"
    assert origin(new, [new, new]) == "2031-04-01"
    assert rows("Cost", [new]) == [(new.figures[0], "2031-04-01")]
    assert rows("Ingest", [new]) == []


def test_a_task_on_a_cluster_is_compared_with_what_is_computed_for_it() -> None:
    constants = Arrays(1_000_000, 32, 1.0, 1.0, 1.0, bytes=170_000_000)
    job = OnCluster(
        100, 12, 365, 600, 60_000_000, 60_000_000, 32, 32, 0.1, 900.0, 800.0, 20 << 30, 11 * 10**9
    )
    name = "closed loop on a cluster, 60 M cells: a task holds ≤ 1.2 x the computed memory"
    assert judged(constants, job)[name].measured == "11.0 GB, computed 10.2"
    assert judged(constants, job)[name].holds
    assert not judged(constants, replace(job, task_bytes=13 * 10**9))[name].holds
    held = "closed loop on a cluster, 60 M cells: producers are held"
    assert not judged(replace(job, policies_that_held=0))[held].holds


def test_the_saved_results_give_the_page_of_this_repository_and_every_claim_holds(tmp_path: Path) -> None:
    names = [entry.name for entry in measurements(Profile.FULL)]
    saved = Store(BENCH.results, BENCH.kinds).load(names)
    missing = sorted(set(names) - {entry.name for entry in saved}, key=names.index)
    assert not judge(replace(BENCH, page=tmp_path / "page.md"), saved, missing, Console(), writes=True)
    assert (tmp_path / "page.md").read_text("utf-8") == BENCH.page.read_text("utf-8")
