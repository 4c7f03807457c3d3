"""`make bench-spark` measures the same work of both engines, and says what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from bench.pipeline.causes import causes
from bench.pipeline.claims import claims
from bench.pipeline.data import Fleet, make
from bench.pipeline.page import page
from bench.pipeline.plan import BASE, FULL
from bench.pipeline.results import Figure, Saved, Store
from bench.pipeline.work import DUCKDB, SPARK, WORKS, folders, spark_usage

FLEET = Fleet(brokers=4, volumes=2)
ANSWER = {"ticks": 10.0, "paused": 2.0, "open": 3.0}


def figure(
    engine: str, work: str, cpu: float, *, cores: int = 2, days: int = 3, rows: int = 12_000_000
) -> Figure:
    return Figure(engine, cores, days, rows, work, ANSWER, [cpu, cpu, 9 * cpu], [cpu / cores] * 3)


def saved(name: str, *figures: Figure) -> Saved:
    return Saved(name, "2026-11-21T20:00:00+00:00", 60.0, 0.1, "a machine", figures)


def test_both_engines_come_to_the_same_answer_and_limits_are_really_crossed(
    spark: SparkSession, tmp_path: Path
) -> None:
    make(tmp_path, FLEET, 2)
    files = ", ".join(f"'{folder}/*.parquet'" for folder in folders(tmp_path, 2))
    connection = duckdb.connect()
    for work in WORKS:
        ours = SPARK[work](spark_usage(spark, tmp_path, 2))
        theirs = DUCKDB[work](connection, f"[{files}]")
        assert ours == {name: pytest.approx(value, rel=1e-9) for name, value in theirs.items()}
        if "paused" in ours:
            assert 0 < ours["paused"] < ours["ticks"]
            assert 0 < ours["open"] < ours["ticks"] - ours["paused"]
    counted = connection.execute(f"SELECT count(*) FROM read_parquet([{files}])").fetchone()
    assert counted == (FLEET.rows(2),)


def test_days_that_are_there_are_not_made_again(tmp_path: Path) -> None:
    make(tmp_path, FLEET, 1)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    make(tmp_path, FLEET, 2)
    assert all(path.stat().st_mtime_ns == moment for path, moment in before.items())
    assert len(list(tmp_path.glob("day=*"))) == 2


def test_an_aim_is_judged_by_the_median_and_another_answer_must_not_be() -> None:
    steps = [
        saved("spark", *(figure("spark", work, 1.0) for work in WORKS)),
        saved("duckdb", *(figure("duckdb", work, 0.5) for work in WORKS)),
        saved("one core", figure("spark", "tick replay", 1.0, cores=1)),
        saved("more", figure("spark", "tick replay", 2.2, days=6, rows=24_000_000)),
    ]
    found = {verdict.aim: verdict for verdict in claims(BASE, steps)}
    assert found["tick replay, 12 M: ≥ 12 M samples per CPU second"].found == "12.0 M"
    assert found["tick replay, 12 M: CPU beside DuckDB's ≤ 2.5 x"].found == "2.00 x"
    assert not found["tick replay: CPU of twice the days ≤ 2.1 x"].holds
    assert found["tick replay: two cores ≥ 1.7 x one"].found == "2.00 x"
    assert all(verdict.holds for verdict in found.values() if verdict.must)
    other = replace(steps[1].figures[0], answer={**ANSWER, "paused": 1.0})
    broken = [steps[0], saved("duckdb", other)]
    assert [verdict.aim for verdict in claims(BASE, broken) if verdict.must and not verdict.holds] == [
        "tick replay, 12 M: the same answer as DuckDB"
    ]


def test_steps_are_saved_as_they_come_and_the_page_shows_those_that_are_there(tmp_path: Path) -> None:
    store, step = Store(tmp_path), saved("spark-2-cores-3-days", figure("spark", "regression", 1.5))
    assert store.load(step.step) is None
    store.save(step)
    loaded = store.load(step.step)
    assert loaded == replace(step, figures=list(step.figures), accuracy=[])
    ingest = {"records": 30_000.0, "bytes": 3e7, "rows": 240_000.0, "exact": 1.0, "seconds": 2.0}
    ingest |= {"command_seconds": 9.0, "cpu_seconds": 12.0}
    steps = [step, replace(saved("ingest"), ingest=ingest)]
    text = page(BASE, steps, claims(BASE, steps), ["forecast"], 3)
    assert "| regression | 12.0 M | Spark | 2 | 1.50 | 0.75 | 8.0 | 0.1 |" in text
    assert "| ingest: ≥ 12,000 records per second | 15,000 | yes |" in text
    assert "Not yet measured: forecast." in text
    assert "on 2026-11-21, in 2 minutes" in text


def test_the_page_says_what_holds_an_aim_that_is_missed_and_nothing_of_others() -> None:
    cpu = {
        "tick replay": 6.0,
        "its columns read": 1.0,
        "its samples chosen": 2.5,
        "replay of one cluster": 3.0,
    }
    slow = [saved("spark", *(figure("spark", work, seconds) for work, seconds in cpu.items()))]
    (why,) = causes(BASE, slow, claims(BASE, slow))
    parts = "1.0 are reading, 1.5 comparing role and status, 0.5 grouping by tick, and 3.0 the name"
    assert f"Of 6.0 CPU seconds {parts}; without it, 4.0 M samples per CPU second." in why
    assert why in page(BASE, slow, claims(BASE, slow), [], 3, [why])
    quick = [saved("spark", figure("spark", "tick replay", 0.5), figure("spark", "regression", 0.5))]
    assert causes(BASE, quick, claims(BASE, quick)) == []


def test_a_full_run_has_all_the_steps_of_an_ordinary_one() -> None:
    assert [lane.name for lane in FULL.lanes][: len(BASE.lanes)] == [lane.name for lane in BASE.lanes]
    assert max(lane.days for lane in FULL.lanes) == 30
