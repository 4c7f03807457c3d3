"""The clients of the broker: in the plug-in's report, and in the history."""

from __future__ import annotations

from dataclasses import replace

from kquota.guard.applied_clients import (
    ClientFigures,
    ClientUse,
    RefusedClient,
    clients_body,
)
from kquota.guard.applied_state import parse_applied_state
from tests.unit.policy.golden import complaints, sample

APPLIED = sample("applied", "clients")
assert isinstance(APPLIED, dict)
SAMPLE = parse_applied_state(APPLIED).clients
assert SAMPLE is not None
APP = ClientUse(
    user="",
    client_id="app",
    produced_bytes=1_000,
    held_seconds=1.0,
    produce_bytes_per_second=50.0,
    produce_throttle_ms=10.0,
    produce_limit_bytes_per_second=40.0,
    fetch_bytes_per_second=0.0,
    fetch_throttle_ms=0.0,
    fetch_limit_bytes_per_second=None,
)


def figures(*clients: ClientUse, known: int = 2) -> ClientFigures:
    return ClientFigures(known, clients, (), ())


def test_the_golden_sample_is_read_whole() -> None:
    assert SAMPLE.known == 3
    assert [client.user for client in SAMPLE.top] == ["<group>ingest", ""]
    assert (SAMPLE.top[0].produce_limit_bytes_per_second, SAMPLE.top[0].fetch_limit_bytes_per_second) == (
        900_000.0,
        None,
    )
    assert SAMPLE.refused[0].requests == 7
    assert (SAMPLE.groups[0].partitions_led, SAMPLE.groups[0].partitions) == (2, 8)
    assert SAMPLE.groups[1].partitions is None
    assert (SAMPLE.groups[0].produced_bytes, SAMPLE.groups[0].refused_requests) == (5_000_000, 7)


def test_a_window_is_the_difference_of_two_reports() -> None:
    later = replace(APP, produced_bytes=7_000, held_seconds=13.5)
    body = clients_body(figures(APP), figures(later, known=5), window_seconds=30.0)
    assert body["Clients"] == [
        {
            "User": "",
            "ClientId": "app",
            "ProduceBytesPerSecond": 200.0,
            "ThrottledSeconds": 12.5,
            "LimitBytesPerSecond": 40.0,
        }
    ]
    assert (body["WindowSeconds"], body["OmittedClients"]) == (30.0, 4)


def test_who_is_new_or_was_forgotten_meanwhile_is_told_by_its_rate() -> None:
    forgotten = replace(APP, produced_bytes=10, held_seconds=0.5, produce_limit_bytes_per_second=None)
    new = replace(
        APP, client_id="new", produced_bytes=9_000_000, produce_bytes_per_second=75.0, held_seconds=99.0
    )
    body = clients_body(figures(APP), figures(forgotten, new), window_seconds=30.0)
    clients = body["Clients"]
    assert isinstance(clients, list)
    assert [(entry["ClientId"], entry["ProduceBytesPerSecond"]) for entry in clients] == [
        ("new", 75.0),
        ("app", 50.0),
    ]
    assert [entry["ThrottledSeconds"] for entry in clients] == [30.0, 0.5], "never more than the window"
    assert "LimitBytesPerSecond" not in clients[1]


def test_what_was_read_is_told_for_the_window_where_the_plug_in_counts_it() -> None:
    def read(before: int | None, now: int | None) -> object:
        later = replace(APP, fetched_bytes=now, fetch_bytes_per_second=8.0)
        body = clients_body(figures(replace(APP, fetched_bytes=before)), figures(later), window_seconds=30.0)
        clients = body["Clients"]
        assert isinstance(clients, list)
        return clients[0].get("FetchBytesPerSecond")

    assert read(1_000, 7_000) == 200.0
    assert read(None, 7_000) == 8.0, "the plug-in has just been upgraded"
    assert read(7_000, 1_000) == 8.0, "it was forgotten meanwhile"
    assert read(7_000, 7_000) == 0.0
    assert read(1_000, None) is None


def test_groups_and_refusals_are_told_for_the_window_too() -> None:
    group, other = SAMPLE.groups
    later = replace(
        group, produced_bytes=8_000_000, fetched_bytes=160_000, held_seconds=20.0, refused_requests=12
    )
    refused = (RefusedClient("User:alice", "loader", 11), RefusedClient("User:bob", "", 3))
    now = replace(SAMPLE, groups=(later, other), refused=refused)
    body = clients_body(SAMPLE, now, window_seconds=30.0)
    assert body["Groups"] == [
        {
            "Name": "ingest",
            "ProduceBytesPerSecond": 100_000.0,
            "FetchBytesPerSecond": 2_000.0,
            "ThrottledSeconds": 7.5,
            "LimitBytesPerSecond": 900_000.0,
            "RefusedRequests": 5,
        },
        {"Name": "nightly", "ProduceBytesPerSecond": 0.0, "ThrottledSeconds": 0.0, "RefusedRequests": 0},
    ]
    # Bob may have been refused long before he got into the list of the worst.
    assert body["Refused"] == [{"Principal": "User:alice", "ClientId": "loader", "Requests": 4}]
    assert "Refused" not in clients_body(now, now, window_seconds=30.0)
    first = clients_body(replace(SAMPLE, refused=()), now, window_seconds=30.0)["Refused"]
    assert first == [
        {"Principal": "User:alice", "ClientId": "loader", "Requests": 11},
        {"Principal": "User:bob", "ClientId": "", "Requests": 3},
    ]
    record = sample("history", "clients")
    assert complaints("history", record | {"Body": body}) == []


def test_topics_of_a_client_are_those_of_a_window_that_is_no_longer_than_the_plug_in_looks_back() -> None:
    writing = replace(APP, topics=("orders", "payments.eu"))
    for window_seconds, topics in ((30.0, ["orders", "payments.eu"]), (60.0, writing.topics), (60.1, None)):
        body = clients_body(figures(APP), figures(writing), window_seconds)
        (entry,) = body["Clients"]
        assert entry.get("Topics") == (None if topics is None else list(topics))
        record = sample("history", "clients")
        assert complaints("history", record | {"Body": body}) == []
    assert "Topics" not in clients_body(figures(APP), figures(APP), 30.0)["Clients"][0]


def test_the_body_is_one_of_the_history() -> None:
    record = sample("history", "clients")
    record["Body"] = clients_body(SAMPLE, SAMPLE, 30.0)
    assert complaints("history", record) == []
