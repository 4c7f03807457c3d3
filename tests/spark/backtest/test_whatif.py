"""Other circumstances: more load, another retention, a lost broker, and who is held then."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from kquota.policy.timestamps import format_utc
from kquota.retention.relief_plan import plan_from_document
from kquota_pipeline.backtest.changes import Change, NothingLeft, changed, with_load, without_brokers
from kquota_pipeline.backtest.closed_loop import simulate
from kquota_pipeline.backtest.flows import Observed, flows_of
from kquota_pipeline.backtest.holds import Holds
from kquota_pipeline.backtest.relief import FreedShare, Relief, UnplayablePlan
from kquota_pipeline.backtest.relief_history import added_at_end, forecast_with, known_relief
from kquota_pipeline.backtest.scene import VolumePlace
from kquota_pipeline.backtest.whatif import added_bytes
from kquota_pipeline.cli.main import COMMANDS
from kquota_pipeline.delta import append, create
from kquota_pipeline.forecast.job import forecast
from kquota_pipeline.history import History
from kquota_pipeline.tables import CLIENTS, DECISIONS, OPERATORS, TOPICS, USAGE, Tables
from tests.spark.backtest.scenes import random_scene
from tests.spark.backtest.test_closed_loop import DEFAULTS, history, scene
from tests.spark.rows import rows

START = datetime(2026, 11, 1, tzinfo=UTC)
COUNT, TICK_SECONDS = 60, 600
NONE = np.zeros(COUNT)
NOWHERE = np.zeros((COUNT, 2))


def growing() -> Observed:
    return history(np.full(COUNT, 50.0), np.zeros(COUNT), first=(5000.0, 3000.0))


def crests(change: Change, added_ratio: np.ndarray = NONE, added_bytes: np.ndarray = NOWHERE) -> Any:
    world, flows = changed(scene(COUNT), growing(), 2.0, change, added_ratio, added_bytes)
    return simulate(world, flows, [DEFAULTS])


def test_without_a_change_everything_is_as_it_was() -> None:
    as_it_was = simulate(scene(COUNT), flows_of(growing(), 2.0), [DEFAULTS])
    same = crests(Change())
    np.testing.assert_array_equal(same.crest_bytes, as_it_was.crest_bytes)
    np.testing.assert_array_equal(same.factors, as_it_was.factors)


def test_twice_the_load_lands_on_the_disks_until_producers_are_held() -> None:
    flows = flows_of(growing(), 2.0)
    np.testing.assert_array_equal(with_load(flows, np.ones(COUNT)).offered_bytes, 2 * flows.offered_bytes)
    assert (with_load(flows, np.full(COUNT, -2.0)).offered_bytes == 0).all()
    once, twice = crests(Change()), crests(Change(), np.ones(COUNT))
    assert once.factors.min() == 1
    assert twice.factors.min() < 1
    grown = 50.0 * (COUNT - 1)
    assert once.crest_bytes[:, 0].sum() == pytest.approx(8000 + 2 * grown, abs=2)
    assert once.crest_bytes[0, 0] < 8500 < twice.crest_bytes[0, 0] < 9500
    assert twice.soft_tick[0, 0] < COUNT
    assert (once.soft_tick == -1).all()


def test_half_the_retention_of_a_topic_leaves_half_of_its_bytes() -> None:
    topic_bytes = np.linspace(2000, 4000, COUNT)[:, None] * np.array([1.0, 0.0])
    less = crests(Change(), added_bytes=-0.5 * topic_bytes)
    np.testing.assert_allclose(crests(Change()).crest_bytes - less.crest_bytes, [[2000], [0]], atol=2)


def test_what_would_have_landed_on_a_lost_broker_lands_on_the_others() -> None:
    world, flows = without_brokers(scene(COUNT), flows_of(growing(), 2.0), frozenset({2}))
    assert [volume.broker_id for volume in world.volumes] == [1]
    np.testing.assert_allclose(flows.share[1:].sum(axis=1), 2.0)
    lost = crests(Change(lost=frozenset({2})))
    assert lost.soft_tick[0, 0] > 0
    with pytest.raises(NothingLeft, match="no broker remains without 1, 2"):
        without_brokers(scene(COUNT), flows_of(growing(), 2.0), frozenset({1, 2}))


def test_the_time_that_each_producer_is_held_adds_up_to_the_tallies() -> None:
    seen = Counter[str]()
    for number in range(12):
        world, flows, policies = random_scene(number)
        holds = Holds(len(policies))
        outcome = simulate(world, flows, policies, holds=holds)
        for place in range(len(policies)):
            by_name = holds.of(place).values()
            assert sum(paused for paused, _ in by_name) == outcome.paused[:, place].sum()
            assert sum(slowed for _, slowed in by_name) == outcome.slowed[:, place].sum()
            seen += Counter(paused=sum(paused for paused, _ in by_name), slowed=sum(s for _, s in by_name))
    assert min(seen["paused"], seen["slowed"]) > 50


def envelope(broker_id: int, tick: int, **fields: object) -> dict[str, object]:
    at = START + timedelta(seconds=TICK_SECONDS * tick)
    given = {"cluster_id": "C", "broker_id": broker_id, "instance_id": "a", "at": at, "day": at.date()}
    return {**given, "sequence": tick, **fields}


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Two brokers whose disks of 1 MB grow by 50 bytes per second each: half of it is `events`, and a client
    of two writes three quarters. `changelog` is compacted.
    """
    place = Tables(f"file:{tmp_path_factory.mktemp('whatif')}/tables")
    limits = {"hard_limit_level": 5.0, "soft_limit_level": 15.0} | {
        f"{kind}_limit_type": "MinFreePercentage" for kind in ("hard", "soft")
    }
    volume: dict[str, object] = {
        "volume_name": "sda",
        "volume_id": "id",
        "status": "ok",
        "role": "data",
        **limits,
    }
    volume["capacity_bytes"] = 1_000_000
    each = [(broker, tick) for broker in (1, 2) for tick in range(20)]
    usage = [envelope(b, t, consumed_bytes=200_000 + 30_000 * t, **volume) for b, t in each]
    clients = [
        envelope(b, t, window_seconds=600.0, user="CN=app", client_id=name, throttled_seconds=0.0)
        | {"produce_bytes_per_second": rate, "omitted_clients": 0}
        for b, t in each
        for name, rate in (("much", 18.75), ("little", 6.25))
    ]
    topics = [
        envelope(b, t, volume_name="sda", topic=topic, bytes=100_000 + grown * t, retention_seconds=kept)
        for b, t in each
        for topic, grown, kept in (("events", 15_000, 3600.0), ("changelog", 0, None))
        if t % 3 == 0
    ]
    given = {USAGE: usage, CLIENTS: clients, TOPICS: topics, DECISIONS: [], OPERATORS: []}
    for table, of_table in given.items():
        create(spark, place, table)
        if of_table:
            append(rows(spark, table, of_table), place, table)
    return place


def ask(tables: Tables, *options: str) -> Any:
    done = CliRunner().invoke(
        COMMANDS.application("whatif"),
        ["whatif", f"--tables={tables.root}", "--replication-factor=2", *options, "--json"],
    )
    assert done.exit_code == 0, f"{done.output}{done.exception!r}"
    return json.loads(done.stdout)


def test_the_command_answers_for_volumes_and_producers(tables: Tables) -> None:
    found = ask(tables, "--load=CN=app/much=2", "--retention=events=0.5", "--without=2")
    before, after = ([row for row in found["volumes"] if row["is_changed"] is so] for so in (False, True))
    assert [row["broker_id"] for row in before] == [1, 2]
    assert [row["broker_id"] for row in after] == [1]
    assert before[0]["crest_bytes"] == 770_000
    assert before[0]["soft_after_hours"] is None
    # Half of `events` is gone, but the load has grown by three quarters, and all lands on one broker.
    assert after[0]["crest_ratio"] > 0.85
    assert after[0]["soft_after_hours"] > 1
    held = {row["client_id"]: row["slowed_hours"] for row in found["producers"]}
    assert set(held) == {"much", "little"}
    assert held["much"] > 0
    as_it_was, otherwise = found["clusters"]
    assert as_it_was["open_hours"] == pytest.approx(20 / 6)
    assert otherwise["throttle_hours"] == pytest.approx(held["much"])


def test_bytes_that_never_leave_by_retention_stay(spark: SparkSession) -> None:
    """A compacted topic has no retention, and a record may lack one."""

    def record(tick: int, topic: str, seconds: float | None, agent: str = "new") -> dict[str, object]:
        return envelope(1, tick, volume_name="sda", topic=topic, retention_seconds=seconds, bytes=100) | {
            "instance_id": agent
        }

    given = [
        *(record(0, topic, None, "old") for topic in ("events", "changelog")),
        record(1, "events", 3600.0),
        record(1, "changelog", None),
        record(2, "others", 3600.0),
    ]
    change = Change(retentions={"events": 0.5, "changelog": 0.25})
    found = added_bytes(rows(spark, TOPICS, given), change, TICK_SECONDS).orderBy("tick").collect()
    assert [row.added for row in found] == [-50, -50, 0]


def written_plan(folder: Path, **changes: object) -> str:
    """A plan that moves half of `events` from broker 1 to broker 2, as it was after an hour."""
    at = START + timedelta(hours=1)
    step = {"kind": "replica-move", "target": "events-0", "setting": "replicas", "from": "1", "to": "2"}
    step |= {"frees_bytes": 95_000, "by": format_utc(at + timedelta(seconds=3000)), "loses": ""}
    step |= {"state": "proposed", "problem": None}
    plan = {"schema_version": 1, "id": "p", "author": "a", "reason": "r", "created": format_utc(at)}
    plan |= {"cluster": "C", "broker_id": 1, "volume": "sda", "to_free_bytes": 90_000, "state": "proposed"}
    plan |= {"restore": {"when": None, "values": []}, "steps": [step]}
    for key, value in changes.items():
        (step if key in step and key != "state" else plan)[key] = value
    path = folder / "plan.json"
    path.write_text(json.dumps(plan), "utf-8")
    return str(path)


def test_a_relief_plan_is_shown_next_to_the_history_without_it(tables: Tables, tmp_path: Path) -> None:
    found = ask(tables, f"--relief={written_plan(tmp_path)}")
    before, after = ([row for row in found["volumes"] if row["is_changed"] is so] for so in (False, True))
    assert [row["crest_bytes"] for row in before] == [770_000, 770_000]
    # Half of the 370,000 bytes of `events` at its last record: broker 2 comes over its soft limit by them.
    assert after[0]["crest_bytes"] < 600_000
    assert after[1]["crest_bytes"] > 900_000
    assert [row["soft_after_hours"] is None for row in (*before, *after)] == [True, True, True, False]
    assert {row["client_id"] for row in found["producers"]} == {"much", "little"}
    consumed = [(row["broker_id"], row["is_changed"], row["consumed_bytes"]) for row in found["forecasts"]]
    assert consumed == [(1, False, 770_000), (1, True, 585_000), (2, False, 770_000), (2, True, 955_000)]
    assert {row["soft_bytes"] for row in found["forecasts"]} == {850_000.0}
    assert found["forecasts"][3]["soft_outlook"] == "over the limit"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cluster": "D"}, "it is of cluster D, and the history of C"),
        ({"schema_version": 7}, "schema_version: 7 is not known here, but 1"),
    ],
)
def test_a_plan_for_something_else_is_refused(
    tables: Tables, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    option = f"--relief={written_plan(tmp_path, **change)}"
    done = CliRunner().invoke(COMMANDS.application("whatif"), ["whatif", f"--tables={tables.root}", option])
    assert done.exit_code != 0
    assert message in done.stderr
    assert str(tmp_path / "plan.json") in done.stderr


def test_a_plan_needs_its_volume_topics_and_targets_in_the_history(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A log dir is on the volume that names it; of a broker the fullest volume is taken."""

    def disk(broker: int, name: str, consumed: int, **fields: object) -> dict[str, object]:
        figures = {"volume_name": name, "consumed_bytes": consumed, "capacity_bytes": 1000, "status": "ok"}
        return envelope(broker, 0, role="data", log_dirs=[f"/{name}/kafka"], **figures, **fields)

    usage = rows(
        spark, USAGE, [disk(1, "sda", 900), disk(1, "sdb", 100), disk(2, "sda", 1), disk(2, "sdb", 5)]
    )
    held = [envelope(1, at, volume_name="sda", topic="events", bytes=size) for at, size in ((6, 190), (7, 9))]
    topics = rows(spark, TOPICS, held)

    def known(**changes: object) -> Relief:
        document = json.loads(Path(written_plan(tmp_path, frees_bytes=95, **changes)).read_text("utf-8"))
        return known_relief(plan_from_document(document), usage, topics)

    (moved,) = known().steps
    assert moved == FreedShare("events", 0.5, VolumePlace(1, "sda"), VolumePlace(2, "sdb"))
    log_dirs = {"kind": "logdir-move", "setting": "log_dirs", "from": "/sda/kafka"}
    assert known(**log_dirs, to="/sdb/kafka").steps[0].target == VolumePlace(1, "sdb")
    for changes, message in (
        ({"target": "orders-0"}, "the table topics has no bytes of orders on volume sda of broker 1"),
        ({"volume": "sdc"}, "the history has no volume sdc of broker 1"),
        ({"to": "9"}, "the history has no broker 9, which events-0 moves to"),
        ({**log_dirs, "to": "/sdc"}, "the history has no log dir /sdc of broker 1, which events-0 moves to"),
    ):
        with pytest.raises(UnplayablePlan, match=message):
            known(**changes)


@pytest.mark.long
def test_the_forecast_counts_what_a_plan_frees(spark: SparkSession) -> None:
    """A disk that gains 2 % a day, of which `events` has a third: half of it freed is some days more."""
    days = 14
    hours_ = [{"hour": hour, "at": START + timedelta(hours=hour)} for hour in range(24 * days)]
    disk = {"volume_name": "sda", "volume_id": "id", "status": "ok", "role": "data", "capacity_bytes": 10**6}
    limits = {f"{kind}_limit_type": "MinFreePercentage" for kind in ("hard", "soft")}
    disk |= {**limits, "hard_limit_level": 5.0, "soft_limit_level": 15.0}
    usage = [
        envelope(1, one["hour"], **disk) | {"at": one["at"], "consumed_bytes": 300_000 + 833 * one["hour"]}
        for one in hours_
    ]
    topics = [envelope(1, 0, volume_name="sda", topic="events", bytes=200_000)]
    nothing = [rows(spark, table, []) for table in (DECISIONS, CLIENTS, OPERATORS)]
    given = History(rows(spark, USAGE, usage), *nothing, rows(spark, TOPICS, topics))
    relief = Relief("C", (FreedShare("events", 0.5),), 600.0, 1.0)
    assert added_at_end(relief, given) == {VolumePlace(1, "sda"): -100_000}
    (without,), (with_plan,) = (
        frame.collect() for frame in (forecast(given.by_hour), forecast_with(relief, given))
    )
    assert with_plan.consumed_bytes == without.consumed_bytes - 100_000
    assert with_plan.soft_bytes == without.soft_bytes == 850_000
    assert with_plan.crest_bytes[0] == pytest.approx(without.crest_bytes[0] - 100_000)
    assert with_plan.soft_days is None or with_plan.soft_days > without.soft_days + 3


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--load=CN=app/none=2", "--load: the history has no client CN=app/none"),
        ("--without=7", "--without: the history has no broker 7"),
        ("--retention=events_=2", "--retention: the table topics has no topic events_"),
        ("--retention=changelog=2", "has no retention by time of topic changelog: it is compacted"),
        ("--load=CN", "'CN' is not NAME=FACTOR"),
    ],
)
def test_what_the_history_does_not_have_is_no_change(tables: Tables, option: str, message: str) -> None:
    done = CliRunner().invoke(COMMANDS.application("whatif"), ["whatif", f"--tables={tables.root}", option])
    assert done.exit_code != 0
    assert message in done.stderr
