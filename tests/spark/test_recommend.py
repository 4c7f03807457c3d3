"""Recommended limits and quotas: the needs, the candidates, the choice, and the files."""

from __future__ import annotations

import json
import math
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
import yaml
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from typer.testing import CliRunner

from bench.bounds import leak_bound_bytes
from kquota_pipeline.backtest.policy import Limits, Policy
from kquota_pipeline.backtest.ten_minutes import ten_minute_rows
from kquota_pipeline.cli.main import COMMANDS
from kquota_pipeline.forecast.series import hourly
from kquota_pipeline.generator.fleet import FleetSize
from kquota_pipeline.generator.history import generate
from kquota_pipeline.recommend.judge import Basis, Recommendation, judge, recommend_limits, span_of, too_fast
from kquota_pipeline.recommend.limits import (
    Need,
    NoSafeLimits,
    candidates,
    choose,
    limits_of,
    needs,
    producing,
    read_needs,
)
from kquota_pipeline.recommend.reserve import Producing, Sizing, reserve_of
from kquota_pipeline.recommend.write import folder_name, quota_commands, write_limits
from kquota_pipeline.tables import CLIENTS, USAGE
from tests.spark.rows import rows

ROOT = Path(__file__).parents[2]


def test_a_brokers_limits_are_what_most_volumes_need_and_the_others_by_mount_point() -> None:
    steep = Need(1, "/data/3", 4.2, 1.0)
    usual = [Need(1, "/data/1", 1.0, 0.5), Need(1, "/data/2", 1.5, 0.5)]
    limits = limits_of([*usual, steep], 1.0, 6)
    assert [str(limits.hard), str(limits.soft)] == ["MinFreePercentage 2 %", "MinFreePercentage 5 %"]
    assert {mount: [str(limit) for limit in pair] for mount, pair in limits.volumes.items()} == {
        "/data/3": ["MinFreePercentage 4.5 %", "MinFreePercentage 10.5 %"]
    }
    # without a mount point a volume can't have its own: then the broker's are the widest
    nameless = limits_of([Need(1, "/data/1", 1.0, 0.5), Need(1, None, 4.2, 1.0)], 1.0, 6)
    assert (str(nameless.hard), nameless.volumes) == ("MinFreePercentage 4.5 %", {})


def test_candidates_that_let_a_disk_fill_are_not_recommended() -> None:
    wanted = candidates([Need(1, "/data/1", 1.0, 0.5)])

    def outcome(policy: Policy, delayed: float, filled: int | None) -> Row:
        return Row(
            policy=policy.name,
            delayed_bytes=delayed,
            first_filled_tick=filled,
            fullest_volume="/dev/sdb1",
            fullest_broker_id=1,
        )

    outcomes = [outcome(wanted[0], 1.0, 600), outcome(wanted[1], 9.0, None), outcome(wanted[2], 5.0, None)]
    assert choose(wanted, outcomes) is wanted[2]
    with pytest.raises(NoSafeLimits, match=r"volume /dev/sdb1 of broker 1 filled"):
        choose(wanted, [outcome(policy, 1.0, 600) for policy in wanted])


def test_a_quota_is_set_with_the_standard_tool_and_names_are_quoted() -> None:
    row = Row(cluster_id="c", user="CN=a b", client_id="", quota_bytes_per_second=5)
    assert quota_commands([row]) == [
        'kafka-configs.sh --bootstrap-server "$BOOTSTRAP" --alter --add-config producer_byte_rate=5 '
        "--entity-type users --entity-name 'CN=a b'"
    ]
    assert Limits().to_document()["hard"] == {"type": "MinFreePercentage", "level": 5}


@pytest.mark.parametrize("name", ["a\x1b]0;x\x07b", "it's\n\\x41", "\u202etxt", "é 'q'"])
def test_a_command_has_the_very_names_and_orders_no_terminal(name: str) -> None:
    (command,) = quota_commands([Row(cluster_id="c", user=name, client_id=name, quota_bytes_per_second=5)])
    assert command.isprintable()
    words = command.removeprefix("kafka-configs.sh ")
    shown = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {words}"], stdout=subprocess.PIPE, check=True, encoding="utf-8"
    )
    assert [shown.stdout.split("\0")[place] for place in (8, 12)] == [name, name]


def test_names_of_clusters_and_clients_order_neither_a_terminal_nor_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = "../\x1b[2Jx\nkquota-pipeline: y"
    risk = SimpleNamespace(sentence=lambda: "no risk")
    found = [
        Recommendation(evil, Policy("p", brokers={1: Limits()}), None, risk),  # type: ignore[arg-type]
        Recommendation(f"{evil}2", None, "no samples", None),
    ]
    row = Row(cluster_id=evil, user=evil, client_id="a", quota_bytes_per_second=5, peak_bytes_per_second=1.0)
    answers = {
        "reader": None,
        "history_of": SimpleNamespace(clients=None),
        "check_tick": None,
        "recommend_limits": found,
        "by_client": None,
        "quotas": SimpleNamespace(collect=lambda: [row]),
    }
    for name, answer in answers.items():
        monkeypatch.setattr(
            f"kquota_pipeline.cli.recommend.{name}", lambda *_given, _answer=answer, **_more: _answer
        )
    folder = tmp_path / "limits"
    arguments = ["recommend", "--tables=file:/x", f"--to={folder}"]
    done = CliRunner().invoke(COMMANDS.application("recommend"), arguments)
    assert done.exit_code == 0, f"{done.output}{done.exception!r}"
    assert all(line.isprintable() for line in done.output.splitlines())
    shown = "../\ufffd[2Jx\ufffdkquota-pipeline: y"
    assert done.stderr.splitlines()[1:] == [
        f"cluster {shown}: p; no risk",
        f"cluster {shown}2: no samples",
        f"{shown} a: usual peak 1 bytes/s on a broker",
    ]
    assert [path.parent.parent for path in tmp_path.rglob("broker-1.yml")] == [folder]
    assert not list(tmp_path.glob("*.yml"))
    assert folder_name("MkU3OEVBNTcwNTJENDM2Qk") == "MkU3OEVBNTcwNTJENDM2Qk"
    assert {folder_name(name) for name in ("..", "/etc", "a/b")} == {"%2E%2E", "%2Fetc", "a%2Fb"}


def test_every_candidate_is_written_as_variables_that_the_role_takes(tmp_path: Path) -> None:
    schema = json.loads((ROOT / "schemas/limits.schema.json").read_text("utf-8"))
    specs = yaml.safe_load((ROOT / "roles/kquota_agent/meta/argument_specs.yml").read_text("utf-8"))
    options = specs["argument_specs"]["main"]["options"]
    volumes = [Need(1, "/data/1", 1.0, 0.5), Need(1, "/data/2", 30.0, 9.0), Need(2, None, 4.0, 0.1)]
    for policy in candidates(volumes):
        paths = write_limits(policy.brokers, tmp_path / policy.name)
        assert [path.name for path in paths] == ["broker-1.yml", "broker-2.yml"]
        for path in paths:
            ((name, limits),) = yaml.safe_load(path.read_text("utf-8")).items()
            assert name in options
            jsonschema.validate(limits, schema)


@st.composite
def measured(draw: st.DrawFn) -> tuple[list[Row], Producing, Sizing]:
    """Volumes as needs() measures them, some of them in one place, with their brokers."""
    gigabytes = st.floats(0, 400e9)

    def volume(name: int) -> Row:
        return Row(
            broker_id=draw(st.integers(1, 2)),
            volume_name=str(name),
            mount_point=draw(st.none() | st.sampled_from(["/data/1", "/data/2"])),
            capacity_bytes=draw(st.sampled_from([10**12, 4 * 10**12])),
            growth_ratio_per_hour=draw(st.floats(0, 0.3)),
            surge_ratio=draw(st.floats(0, 1)),
            gained_bytes=draw(gigabytes),
            fill_bytes_per_second=draw(st.floats(0, 20e9)),
        )

    rows_ = [volume(name) for name in range(draw(st.integers(1, 5)))]
    brokers = {broker: draw(st.integers(0, 2000)) for broker in (1, 2)}
    sizing = Sizing(
        reaction_seconds=draw(st.floats(0, 5)),
        request_bytes=draw(st.integers(0, 10**6)),
        pause_seconds=draw(st.floats(0, 7200)),
        trusts_fence=draw(st.booleans()),
    )
    return rows_, Producing(brokers, frozenset(draw(st.sets(st.integers(1, 2))))), sizing


@given(measured())
@settings(max_examples=200)
def test_no_limits_are_closer_than_the_sizing_guide_asks_for(
    given_history: tuple[list[Row], Producing, Sizing],
) -> None:
    """The guide's formula, written once more: limits of each candidate keep it on every volume."""
    measured_rows, brokers, sizing = given_history
    needed = read_needs(measured_rows, brokers, sizing)
    wanted = candidates(needed)
    event("refused" if not wanted else "recommended")
    assert bool(wanted) == (too_fast("C", needed) is None)
    total = sum(row.gained_bytes for row in measured_rows)
    for row in measured_rows:
        a = 3 * (row.gained_bytes / total if total else 1 / len(measured_rows))
        rate, delay = row.fill_bytes_per_second, sizing.reaction_seconds + 5.5
        reserve = rate * delay
        for broker, connections in brokers.connections.items():
            reserve += a * connections * sizing.request_bytes
            if broker in brokers.without_fence or not sizing.trusts_fence:
                at_once = max(2**20, connections * sizing.request_bytes)
                reserve += a * leak_bound_bytes(at_once, sizing.pause_seconds, 10, 11)
        reserve += min(0.25 * row.surge_ratio, 0.2) * row.capacity_bytes
        for policy in wanted:
            pair = policy.pair(row.broker_id, row.mount_point)
            assert pair is not None
            hard, soft = (float(limit.level) / 100 * row.capacity_bytes for limit in (pair.hard, pair.soft))
            assert hard >= reserve * (1 - 1e-9), (policy, row)
            assert soft - hard >= math.e * rate * (delay + 1) * (1 - 1e-9), (policy, row)


def test_a_broker_without_the_fence_leaks_as_in_the_example_of_the_guide() -> None:
    """docs/sizing.md: 7.35 GB per broker, and 14.7 GB on the fullest volume."""
    sizing = Sizing(request_bytes=100_000)
    share, connections = 3 / 9 * 2, dict.fromkeys((1, 2, 3), 100)
    fenced = reserve_of(200e6, share, 0, Producing(connections), sizing)
    assert (fenced.full_speed_bytes, fenced.leak_bytes) == (1.5e9, 0)
    assert fenced.in_flight_bytes == pytest.approx(0.02e9)
    one = reserve_of(200e6, share, 0, Producing(connections, frozenset({2})), sizing)
    assert one.leak_bytes == pytest.approx(share * 7.35e9)
    without = reserve_of(200e6, share, 0, Producing(connections), replace(sizing, trusts_fence=False))
    assert without.leak_bytes == pytest.approx(14.7e9)
    assert without.bytes == pytest.approx(16.22e9)
    assert without.sentence() == (
        "a reserve of 16.22 GB = 1.50 GB at full speed until producers are held + 0.02 GB of requests in "
        "flight + 14.70 GB that a PAUSE lets through + 0.00 GB by other writers; a zone of 4.62 GB"
    )


def test_a_volume_that_is_smaller_than_its_reserve_and_zone_gets_no_limits() -> None:
    assert too_fast("C", [Need(1, "/a", 1, 1, 40, 50)]) is None
    found = too_fast("C", [Need(1, "/a", 1, 1, 40, 50), Need(2, "/b", 1, 1, 70, 90)])
    assert found is not None
    assert found.problem is not None
    assert "broker 2 (mounted at /b)" in found.problem
    candidates([Need(2, "/b", 1, 1, 170, 90)])


START = datetime(2026, 10, 1, tzinfo=UTC)
WEEK = timedelta(weeks=1)


@pytest.mark.parametrize(("weeks", "held_back"), [(1, 0), (1.9, 0), (2, 1), (5.9, 1), (6, 2), (50, 2)])
def test_weeks_are_held_back_from_histories_that_have_enough(weeks: float, held_back: int) -> None:
    span = span_of(START, START + weeks * WEEK, frozenset())
    assert span.last - span.split == held_back * WEEK


def outcome(policy: Policy, *, filled: bool = False, throttled: int = 600) -> Row:
    return Row(
        policy=policy.name,
        delayed_bytes=5.0,
        first_filled_tick=600 if filled else None,
        fullest_volume="/dev/sdb1",
        fullest_broker_id=1,
        fullest_ratio=0.9,
        throttle_seconds=throttled,
        pause_seconds=0,
        paused_producer_hours=0.0,
        slowed_producer_hours=2.0,
    )


def test_limits_are_judged_by_the_weeks_that_were_held_back() -> None:
    wanted = candidates([Need(1, "/data/1", 1.0, 0.5), Need(2, "/data/1", 1.0, 0.5)])[:1]
    span = span_of(START, START + 6 * WEEK, frozenset({1}))
    good = judge("C", span, wanted, [outcome(wanted[0])], [outcome(wanted[0])])
    assert good.policy is not None
    assert good.risk is not None
    assert set(good.policy.brokers) == {1}, "the other has not been heard of for a day"
    assert (good.risk.confidence, good.risk.held_back_days, good.risk.tried_days) == ("high", 14, 28)
    assert good.risk.sentence() == (
        "in 14 days held back the fullest volume, /dev/sdb1 of broker 1, came to 90.0% and kept 10.0% free; "
        "0.0 producer-hours paused, 2.0 producer-hours slowed, confidence high: volumes came over these "
        "limits in the days held back, and none filled"
    )
    bad = judge("C", span, wanted, [outcome(wanted[0])], [outcome(wanted[0], filled=True)])
    assert bad.policy is None
    assert "volume /dev/sdb1 of broker 1 filled in the days that were held back" in str(bad.problem)
    idle = judge("C", span, wanted, [outcome(wanted[0])], [outcome(wanted[0], throttled=0)])
    few = judge("C", span_of(START, START + 2 * WEEK, frozenset({1})), wanted, [outcome(wanted[0])],
                [outcome(wanted[0])])  # fmt: skip
    none = judge("C", span_of(START, START + WEEK, frozenset({1})), wanted, [outcome(wanted[0])], [])
    assert [one.risk.confidence for one in (idle, few, none) if one.risk] == ["medium", "medium", "low"]


def test_the_reserve_is_that_of_the_sizing_guide(spark: SparkSession) -> None:
    def record(seconds: float, **fields: object) -> dict[str, object]:
        at = START + timedelta(seconds=seconds)
        return {"cluster_id": "C", "broker_id": 1, "instance_id": "a", "at": at, "day": at.date(),
                "sequence": int(seconds), **fields}  # fmt: skip

    consumed = {0: 0, 30: 600, 60: 660, 3600: 700, 3630: 1000}
    disk = {"volume_name": "sda", "volume_id": "id", "mount_point": "/a", "status": "ok", "role": "data"}
    usage = [
        record(s, consumed_bytes=bytes_, capacity_bytes=100_000, **disk) for s, bytes_ in consumed.items()
    ]
    clients = [record(0, user="u", client_id=name, omitted_clients=3) for name in ("a", "b")]
    sizing = Sizing(reaction_seconds=2, window_seconds=11, request_bytes=100, replication_factor=2)
    # The governor held producers last. Of what was faster after the weeks held back began, all counts.
    for row, mechanism in zip(usage, ("none", "fence", "governor", "none", "none"), strict=True):
        row["applied_mechanism"] = mechanism
    samples, of_clients = rows(spark, USAGE, usage), rows(spark, CLIENTS, clients)
    stepped = ten_minute_rows(samples)
    tried = F.col("hour") < int(START.timestamp()) // 3600 + 1
    measured_rows = needs(hourly(samples), stepped, tried).collect()
    assert [row.fill_bytes_per_second for row in measured_rows] == [20]
    assert [row.surge_ratio for row in measured_rows] == [0]
    brokers = producing(stepped, of_clients, sizing)["C"]
    assert (brokers.connections, brokers.without_fence) == ({1: 5}, {1})
    assert producing(stepped, of_clients, replace(sizing, connections=40))["C"].connections == {1: 40}
    (need,) = read_needs(measured_rows, brokers, sizing)
    leak = 2 * 2**20 * (15 + 2 * 3600 / 10)
    assert need.reserve_percent == pytest.approx((20 * (2 + 5.5) + 2 * 5 * 100 + leak) / 1000)
    assert need.zone_percent == pytest.approx(math.e * 20 * (2 + 5.5 + 1) / 1000)
    basis = Basis([need], brokers, sizing)
    assert basis.sentence().endswith(
        "; 5 clients of the records as connections; brokers without the fence: 1"
    )
    assert basis.document()["connections_are"] == "clients"


@pytest.mark.long
def test_clusters_with_the_same_broker_ids_get_limits_of_their_own(spark: SparkSession) -> None:
    made = generate(spark, FleetSize(brokers=5, volumes_per_broker=2, days=16, interval_seconds=1800), 2)
    found = recommend_limits(made, 1800, Sizing())
    assert len({one.cluster_id for one in found}) == 2
    for one in found:
        assert one.policy is not None, one.problem
        assert one.risk is not None
        assert (one.risk.held_back_days, one.risk.confidence) == (7, "medium")
        assert 0 < one.risk.margin_ratio < 1
    assert found[0].policy != found[1].policy
