"""Whose bytes the disks hold: figures add up, and known writers get what is theirs."""

from __future__ import annotations

import csv
import random
import re
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from kquota_pipeline.accounting.attribution import (
    CELL,
    FIGURES,
    Account,
    Writers,
    account_of_cluster,
    divide,
    fillers,
    joined_account,
    owners,
)
from kquota_pipeline.accounting.days import by_topic, held_by_topics, holdings_of, writing_rows
from kquota_pipeline.cli.chargeback import _print, _write
from kquota_pipeline.forecast.series import hourly
from kquota_pipeline.report.writers import name_of, user_name
from kquota_pipeline.tables import CLIENTS, TOPICS, USAGE
from tests.spark.rows import rows

FIRST = date(2026, 11, 2)
DAYS = [FIRST + timedelta(days=number) for number in range(3)]
WRITERS = [("CN=a", "x"), ("CN=a", "y"), ("CN=b", ""), ("", ""), (None, None)]
NAMES = ["clicks", "logs", "orders", None]
SIZES = st.integers(0, 10**13)


def holding(
    topic: str | None, held: float, day: date = FIRST, inflow: float = 0.0, cluster: str = "C", **more: bool
):
    return {
        "cluster_id": cluster, "topic": topic, "day": day, "byte_days": held, "mean_bytes": held,
        "inflow_bytes": inflow, "has_held": True, "has_growth": True, **more,
    }  # fmt: skip


def writing(
    user: str | None,
    topic: str | None,
    written: float,
    day: date = FIRST,
    client_id: str | None = "x",
    read: float | None = None,
):
    return {
        "cluster_id": "C", "user": user, "client_id": None if user is None else client_id, "topic": topic,
        "day": day, "written_bytes": written, "read_bytes": read,
    }  # fmt: skip


def accounted(holdings: list, writings: list, first: date = FIRST, last: date = FIRST) -> Account:
    held = pd.DataFrame(holdings, columns=list(holding(None, 0)))
    wrote = pd.DataFrame(writings, columns=list(writing(None, None, 0)))
    parts = [
        account_of_cluster(held[held["cluster_id"] == name], wrote[wrote["cluster_id"] == name], first, last)
        for name in sorted({*held["cluster_id"], *wrote["cluster_id"]})
    ]
    return joined_account(pd.concat(parts) if parts else pd.DataFrame(columns=[*CELL, *FIGURES, "ratio"]))


def figures(found: Account, column: str = "byte_days") -> dict[tuple[str | None, str | None], float]:
    rows = owners(found.rows, ["user", "topic"])
    keys = zip(rows["user"], rows["topic"], strict=True)
    return {key: round(value, 3) for key, value in zip(keys, rows[column], strict=True) if value}


def test_a_topic_belongs_to_those_who_wrote_to_it_in_proportion() -> None:
    found = accounted(
        [holding("orders", 900.0, inflow=90.0), holding("logs", 100.0, inflow=10.0)],
        [writing("CN=a", "orders", 60.0), writing("CN=b", "orders", 30.0), writing("CN=b", "logs", 10.0)],
    )
    assert figures(found)[("CN=a", "orders")] == pytest.approx(600, rel=0.01)
    assert figures(found)[("CN=b", "orders")] == pytest.approx(300, rel=0.02)
    assert figures(found)[("CN=b", "logs")] == pytest.approx(100, rel=0.01)
    assert (None, "orders") not in figures(found)
    assert figures(found, "written_bytes")[("CN=a", "orders")] == 60


def test_writers_whose_topics_are_not_known_leave_bytes_unattributed() -> None:
    # Two thirds of what flowed in went to orders: 120 of 180 bytes, of which 100 are known to be of a.
    found = accounted(
        [holding("orders", 600.0, inflow=2.0), holding("logs", 50.0, inflow=1.0), holding(None, 7.0)],
        [writing("CN=a", "orders", 100.0), writing("CN=b", None, 60.0), writing(None, None, 20.0)],
    )
    held = figures(found)
    assert held[("CN=a", "orders")] == pytest.approx(500, rel=0.001)
    assert held[(None, "orders")] == pytest.approx(100, rel=0.005)
    assert held[(None, "logs")] == 50
    assert held[(None, None)] == 7
    assert figures(found, "written_bytes") == {("CN=a", "orders"): 100, ("CN=b", None): 60, (None, None): 20}


def test_a_client_whose_topics_were_named_while_it_wrote_nothing_keeps_what_it_wrote() -> None:
    # As of a client that was refused in all windows that name a topic.
    found = accounted([holding("orders", 10.0)], [writing("CN=a", "orders", 0.0), writing("CN=a", None, 7.0)])
    assert figures(found, "written_bytes") == {("CN=a", None): 7}
    assert figures(found) == {(None, "orders"): 10}


def test_what_a_client_reads_is_its_own_and_has_no_topic() -> None:
    found = accounted(
        [holding("orders", 600.0, inflow=2.0)],
        [
            writing("CN=a", "orders", 100.0),
            writing("CN=a", None, 0.0, read=40.0),
            writing("CN=r", None, 0.0, read=7.0),
            writing("CN=r", None, 0.0, FIRST - timedelta(days=1), read=9.0),
        ],
    )
    assert figures(found, "read_bytes") == {("CN=a", None): 40, ("CN=r", None): 7}
    assert figures(found, "written_bytes") == {("CN=a", "orders"): 100}
    assert figures(found) == {("CN=a", "orders"): 600}, "who reads holds nothing"


def test_a_client_of_several_topics_fills_them_as_bytes_flow_in() -> None:
    found = accounted(
        [holding("orders", 1000.0, inflow=30.0), holding("logs", 1000.0, inflow=10.0)],
        [writing("CN=a", "orders", 20.0), writing("CN=a", "logs", 20.0)],
    )
    assert figures(found, "written_bytes") == {("CN=a", "orders"): 30, ("CN=a", "logs"): 10}
    assert figures(found) == {("CN=a", "orders"): 1000, ("CN=a", "logs"): 1000}


def test_a_topic_that_is_only_kept_stays_with_those_who_wrote_it() -> None:
    before = FIRST - timedelta(days=20)
    found = accounted(
        [holding("audit", 500.0), holding("logs", 80.0, inflow=5.0)],
        [writing("CN=a", "audit", 10.0, day=before), writing("CN=b", "logs", 10.0)],
    )
    assert figures(found)[("CN=a", "audit")] == pytest.approx(500)


def test_growth_is_that_of_what_each_holds() -> None:
    holdings = [
        holding(topic, held, day, inflow=held)
        for day, sizes in zip(DAYS, ((100.0, 50.0), (200.0, 50.0), (400.0, 20.0)), strict=True)
        for topic, held in zip(("orders", "logs"), sizes, strict=True)
    ]
    writings = [writing("CN=a", "orders", 10.0, day) for day in DAYS]
    found = accounted([*holdings, holding(None, 3.0, DAYS[-1])], writings, last=DAYS[-1])
    assert figures(found, "growth_bytes") == {
        ("CN=a", "orders"): 300,
        (None, "logs"): -30,
        (None, None): 3,
    }
    assert figures(found, "held_bytes")[("CN=a", "orders")] == 400
    assert figures(found)[("CN=a", "orders")] == 700


def test_nothing_is_known_where_no_window_names_a_topic() -> None:
    found = accounted([holding("orders", 10.0)], [writing("CN=a", None, 5.0)])
    assert figures(found) == {(None, "orders"): 10}
    assert accounted([], []).rows.empty


holdings = st.lists(
    st.builds(holding, st.sampled_from(NAMES), SIZES, st.sampled_from(DAYS), SIZES, st.sampled_from("CD")),
    max_size=12,
)
writings = st.lists(
    st.tuples(
        st.sampled_from(WRITERS), st.sampled_from(NAMES), SIZES, st.sampled_from(DAYS), st.none() | SIZES
    ).map(
        lambda one: writing(
            one[0][0], None if one[0][0] is None else one[1], one[2], one[3], one[0][1], one[4]
        )
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(holdings, writings)
def test_figures_add_up_to_what_volumes_held_and_clients_wrote(held: list, wrote: list) -> None:
    found = accounted(held, wrote, FIRST, DAYS[-1])
    sums = found.rows[list(FIGURES)].sum()
    on = {day: sum(one["mean_bytes"] for one in held if one["day"] == day) for day in DAYS}
    assert sums["byte_days"] == pytest.approx(sum(one["byte_days"] for one in held), rel=1e-9)
    assert sums["held_bytes"] == pytest.approx(on[DAYS[-1]], rel=1e-9)
    if found.rows["growth_bytes"].notna().all():
        assert sums["growth_bytes"] == pytest.approx(on[DAYS[-1]] - on[FIRST], rel=1e-9, abs=1)
    else:
        assert all(one["day"] > FIRST for one in wrote if one["written_bytes"])
    assert sums["written_bytes"] == pytest.approx(sum(one["written_bytes"] for one in wrote), rel=1e-9)
    assert sums["read_bytes"] == pytest.approx(sum(one["read_bytes"] or 0 for one in wrote), rel=1e-9)
    for column in ("byte_days", "held_bytes", "written_bytes", "read_bytes"):
        assert (found.rows[column] >= -1).all()
    # Only known writers of a topic hold any of it.
    known = {(one["user"], one["topic"]) for one in wrote if one["written_bytes"]}
    for user, topic in figures(found):
        assert user is None or (user, topic) in known


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_shares_keep_the_sums_of_clients_and_topics_where_both_can_be_had(data: st.DataObject) -> None:
    """A division that exists is found again by its sums, for a client that writes to all topics."""
    count = data.draw(st.integers(1, 5))
    sizes = st.lists(st.floats(1, 1e6), min_size=count, max_size=count)
    truth = np.array(data.draw(st.lists(sizes, min_size=1, max_size=4)))
    client, topic = (places.ravel() for places in np.indices(truth.shape))
    rest = np.array(data.draw(sizes))
    shares = divide(
        Writers(client, topic, np.ones(truth.size)),
        truth.sum(axis=1),
        truth.sum(axis=0) + rest,
        float(rest.sum()),
    )
    of_client = np.bincount(client, shares.of_client)
    np.testing.assert_allclose(of_client, 1)
    whole = truth.sum(axis=0) + rest
    written = np.bincount(client, shares.of_topic * whole[topic])
    np.testing.assert_allclose(written, truth.sum(axis=1), rtol=0.01)
    assert (np.bincount(topic, shares.of_topic) <= 1 + 1e-9).all()


def test_a_rest_of_rounding_is_no_part_of_what_fills_a_volume() -> None:
    shares = pd.DataFrame({"user": ["CN=a", "CN=b"], "topic": ["logs", "logs"], "ratio": [0.7, 0.3 - 1e-15]})
    found = fillers({"logs": 1e9, None: 5.0}, {"logs": 3e9, None: 5.0}, shares)
    assert found == {
        "has_grown": True,
        "bytes": 2e9,
        "parts": [
            {"user": "CN=a", "topic": "logs", "bytes": 1.4e9},
            {"user": "CN=b", "topic": "logs", "bytes": pytest.approx(0.6e9)},
        ],
    }


PLACE: dict[str, object] = {"volume_name": "/dev/sda", "day": DAYS[0]}


@pytest.mark.parametrize("look_hours", [[0, 5], [3], [20], []])
def test_a_volume_holds_what_its_samples_say_and_looks_divide_it(look_hours: list[int]) -> None:
    hours = pd.DataFrame({"hour": [0, 1, 2, 10], "mean_bytes": [100.0, 120.0, 40.0, 90.0]})
    looks = pd.DataFrame(
        [
            {"at": hour * 3_600_000_000 + 5, "topic": topic, "bytes": size, "inflow_bytes": inflow}
            for hour in look_hours
            for topic, size, inflow in (("clicks", 60, 6.0), ("logs", 20, np.nan), (None, 10, 1.0))
        ],
        columns=["at", "topic", "bytes", "inflow_bytes"],
    )
    found = held_by_topics(hours.assign(**PLACE), looks.assign(**PLACE))
    assert found["byte_days"].sum() == pytest.approx(350 / 24)
    assert set(found["hours"]) == {4}
    held = {row.topic: row.byte_days * 24 for row in found.itertuples()}
    # Of the third hour's 40 bytes two thirds are clicks; in the others they are as large as the look says.
    whole = {(0, 5): [60, 60, 40 * 60 / 90, 60], (3,): [60, 60, 40 * 60 / 90, 0], (20,): [0], (): [0]}
    assert held.get("clicks", 0) == pytest.approx(sum(whole[tuple(look_hours)]))
    assert held[None] == pytest.approx(350 - held.get("clicks", 0) - held.get("logs", 0))
    inflow = {row.topic: row.inflow_bytes for row in found.itertuples()}
    assert inflow.get("clicks", 0) == 6 * len(look_hours)
    assert inflow[None] == len(look_hours)


def test_an_hour_has_the_last_look_of_its_own_hour_and_a_day_without_samples_nothing() -> None:
    hours = pd.DataFrame({"hour": [7], "mean_bytes": [24.0]})
    looks = pd.DataFrame(
        {"at": [7 * 3_600_000_000, 7 * 3_600_000_000 + 1], "topic": ["a", "b"], "bytes": [24, 24]}
    ).assign(inflow_bytes=0.0)
    hours, looks = hours.assign(**PLACE), looks.assign(**PLACE)
    found = held_by_topics(hours, looks)
    assert {row.topic: row.byte_days for row in found.itertuples()} == {"a": 0, "b": 1, None: 0}
    assert held_by_topics(hours.iloc[:0], looks).empty


def test_each_day_of_a_volume_is_divided_by_its_own_looks() -> None:
    begin = 24 * (DAYS[0] - date(1970, 1, 1)).days
    hours = pd.DataFrame({"hour": [begin, begin + 23, begin + 24], "mean_bytes": [48.0, 96.0, 120.0]})
    looks = pd.DataFrame({"hour": [begin + 22, begin + 22, begin + 48], "topic": ["a", "b", "a"]})
    looks = looks.assign(at=looks["hour"] * 3_600_000_000, bytes=[24, 72, 24], inflow_bytes=[1.0, 2.0, 4.0])
    for rows_ in (hours, looks):
        rows_["day"] = [DAYS[(hour - begin) // 24] for hour in rows_["hour"]]
        rows_["volume_name"] = "/dev/sda"
    found = held_by_topics(hours, looks)
    assert found["day"].tolist() == [DAYS[0]] * 3 + [DAYS[1]], "a look alone holds nothing"
    assert found["byte_days"].tolist() == [1, 3, 2, 5]
    assert set(found["volume_name"]) == {"/dev/sda"}


MOMENTS = st.integers(0, 71)
HOURS_OF_VOLUMES = st.dictionaries(
    st.tuples(st.sampled_from(["/dev/sda", "/dev/sdb"]), MOMENTS), st.integers(0, 10**6), max_size=30
)
LOOKS_AT_VOLUMES = st.dictionaries(
    st.tuples(
        st.sampled_from(["/dev/sda", "/dev/sdb", "/dev/sdc"]), MOMENTS, st.sampled_from(["a", "b", None])
    ),
    st.tuples(st.integers(0, 10**6), st.one_of(st.none(), st.integers(0, 100))),
    max_size=40,
)


@given(held=HOURS_OF_VOLUMES, seen=LOOKS_AT_VOLUMES, order=st.randoms(use_true_random=False))
def test_each_day_of_each_volume_is_divided_as_if_it_were_alone(
    held: dict[tuple[str, int], int],
    seen: dict[tuple[str, int, str | None], tuple[int, int | None]],
    order: random.Random,
) -> None:
    hours = pd.DataFrame(
        [(volume, DAYS[hour // 24], hour, float(size)) for (volume, hour), size in held.items()],
        columns=["volume_name", "day", "hour", "mean_bytes"],
    )
    looks = pd.DataFrame(
        [
            (volume, DAYS[hour // 24], hour * 3_600_000_000, topic, size, inflow)
            for (volume, hour, topic), (size, inflow) in seen.items()
        ],
        columns=["volume_name", "day", "at", "topic", "bytes", "inflow_bytes"],
    )
    shuffled = [frame.iloc[order.sample(range(len(frame)), len(frame))] for frame in (hours, looks)]
    found = held_by_topics(*shuffled)
    pd.testing.assert_frame_equal(found, held_by_topics(hours, looks), check_exact=True)
    assert not found.duplicated(["volume_name", "day", "topic"]).any()
    places = hours[["volume_name", "day"]].drop_duplicates()
    alone = []
    for place in places.itertuples(index=False):
        of_hours, of_looks = (
            frame[(frame["volume_name"] == place.volume_name) & (frame["day"] == place.day)]
            for frame in (hours, looks)
        )
        one = held_by_topics(of_hours, of_looks)
        assert one["byte_days"].sum() == pytest.approx(of_hours["mean_bytes"].sum() / 24)
        assert one["inflow_bytes"].sum() == of_looks["inflow_bytes"].sum()
        assert set(one["hours"]) == {len(of_hours)}
        alone.append(one)
    keys = ["volume_name", "day", "topic"]
    if alone:
        expected = pd.concat(alone).sort_values(keys, ignore_index=True)
        pd.testing.assert_frame_equal(found.sort_values(keys, ignore_index=True), expected)
    else:
        assert found.empty


def test_a_day_has_the_same_bits_whatever_the_order_of_its_rows(spark: SparkSession) -> None:
    at = datetime(2026, 11, 2, 3, tzinfo=UTC)
    place = {"cluster_id": "C", "broker_id": 1, "instance_id": "I", "day": FIRST}
    rates = [0.1, 1e9 / 3, 0.7, 1e16, 2.3e-3] * 4
    windows = [
        {**place, "sequence": number // 2, "at": at, "window_seconds": 30.1, "user": user, "client_id": "",
         "produce_bytes_per_second": rate, "fetch_bytes_per_second": rate * 3, "omitted_clients": 1,
         "observed_bytes_per_second": 3e16}
        for number, rate in enumerate(rates) for user in ("a", "b")
    ]  # fmt: skip
    samples = [
        {**place, "sequence": number, "at": at + timedelta(seconds=number), "volume_name": "/dev/sda",
         "status": "ok", "role": "data", "capacity_bytes": 2**62, "consumed_bytes": 2**(3 * number + 1) + 1,
         "applied_factor": 1 / (number + 3)}
        for number in range(20)
    ]  # fmt: skip
    for derived, table, came in ((writing_rows, CLIENTS, windows), (hourly, USAGE, samples)):
        orders = (came, came[::-1], came[1::2] + came[::2])
        days = [sorted(map(repr, derived(rows(spark, table, one)).collect())) for one in orders]
        assert days[0] == days[1] == days[2]


def test_a_rate_beyond_all_disks_is_no_error(spark: SparkSession) -> None:
    at = datetime(2026, 11, 2, 3, tzinfo=UTC)
    window = {"cluster_id": "C", "broker_id": 1, "instance_id": "I", "sequence": 1, "at": at, "day": FIRST}
    window |= {"user": "a", "client_id": "", "window_seconds": 30.0, "produce_bytes_per_second": 1e300}
    (row,) = writing_rows(rows(spark, CLIENTS, [window])).collect()
    assert row["written_bytes"] == 1e24


def test_what_records_say_of_clients_and_looks_becomes_days(spark: SparkSession) -> None:
    at = datetime(2026, 11, 2, 3, tzinfo=UTC)
    place = {"cluster_id": "C", "broker_id": 1, "instance_id": "I", "sequence": 1, "at": at, "day": FIRST}
    window = {"window_seconds": 30.0, "observed_bytes_per_second": 100.0, "omitted_clients": 0}
    clients = rows(
        spark,
        CLIENTS,
        [
            {**place, **window, "user": "a", "client_id": "", "produce_bytes_per_second": 10.0,
             "topics": ["x", "y"]},
            {**place, **window, "user": "a", "client_id": "", "produce_bytes_per_second": 4.0, "sequence": 2,
             "topics": ["x"]},
            {**place, **window, "user": "b", "client_id": "i", "produce_bytes_per_second": 70.0,
             "fetch_bytes_per_second": 2.0, "sequence": 3, "omitted_clients": 2},
            {**place, **window, "user": "c", "client_id": "", "produce_bytes_per_second": 0.0,
             "fetch_bytes_per_second": 5.0, "topics": ["x"], "sequence": 5},
            {**place, **window, "sequence": 4},
        ],
    )  # fmt: skip
    days = {
        (row.user, row.topic): (row.written_bytes, row.read_bytes) for row in writing_rows(clients).collect()
    }
    assert days == {
        ("a", "x"): (270, None),
        ("a", "y"): (150, None),
        ("b", None): (2100, 60),
        ("c", "x"): (0, None),
        ("c", None): (0, 150),
        (None, None): (900, None),
    }
    volume = {**place, "volume_name": "/dev/sda"}
    usage = [{**volume, "status": "ok", "role": "data", "consumed_bytes": 240, "capacity_bytes": 1000}]
    looks = [
        {
            **volume,
            "topic": "x",
            "bytes": 100,
            "grown_bytes": -20,
            "span_seconds": 600.0,
            "leaving_soon_bytes": 300,
        },
        {**volume, "topic": None, "bytes": 40},
    ]  # fmt: skip
    held = by_topic(
        holdings_of(hourly(rows(spark, USAGE, usage)), rows(spark, TOPICS, looks)), FIRST, FIRST
    ).collect()
    found = {row.topic: (row.byte_days, row.mean_bytes, row.inflow_bytes) for row in held}
    assert found == {
        "x": (pytest.approx(100 / 24), pytest.approx(100), pytest.approx(30)),
        None: (pytest.approx(140 / 24), pytest.approx(140), 0),
    }


def named_rows(*users: str | None, group: str | None = None) -> pd.DataFrame:
    """Return rows of an account of these users, who held 1, 2, 3, … bytes, with no other names."""
    return pd.DataFrame(
        {
            "cluster_id": "C",
            "group": pd.Series([group] * len(users), dtype=object),
            **{name: pd.Series(list(users), dtype=object) for name in ("user", "client_id", "topic")},
            **{name: [float(number) for number in range(1, len(users) + 1)] for name in FIGURES},
        }
    )


def test_an_unknown_owner_and_one_called_unattributed_are_told_apart(tmp_path, capsys) -> None:
    users = [None, "unattributed", '"unattributed"', "", "ANONYMOUS", "a"]
    rows = named_rows(*users)
    assert [user_name(user) for user in users] == [
        "unattributed", '"unattributed"', '""unattributed""', "ANONYMOUS", "ANONYMOUS", "a",
    ]  # fmt: skip
    _write(rows, tmp_path / "days.csv", None)
    with (tmp_path / "days.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["user"] for row in found] == [user_name(user) for user in users]
    assert [row["topic"] for row in found] == [name_of(user) for user in users]
    _print(owners(rows, ["cluster_id", "user"]), "Chargeback")
    shown = capsys.readouterr().out
    assert len(re.findall(r'^ *"unattributed" ', shown, re.MULTILINE)) == 1
    assert len(re.findall(r"^ *unattributed ", shown, re.MULTILINE)) == 1


def test_no_name_in_a_file_is_a_formula_of_a_spreadsheet(tmp_path) -> None:
    users = ["=1+2", "+1", "-1", "@SUM(A1)", "\t=1", "'=1", "a=1", "a\n=1"]
    rows = named_rows(*users, group="=cmd|' /C calc'!A1").assign(growth_bytes=-5.0)
    _write(rows, tmp_path / "days.csv", None)
    with (tmp_path / "days.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    for name in ("user", "client_id", "topic"):
        assert [row[name] for row in found] == [*(f"'{user}" for user in users[:6]), *users[6:]]
    assert {row["group"] for row in found} == {"'=cmd|' /C calc'!A1"}
    assert {row["growth_bytes"] for row in found} == {"-5.0"}, "figures stay figures"
