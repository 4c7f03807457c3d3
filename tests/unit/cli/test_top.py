"""``kquota top`` with a real applied-state file."""

from __future__ import annotations

from tests.unit.cli.command import Host
from tests.unit.policy.golden import sample

SAMPLE = sample("applied", "clients")


def test_it_shows_who_produces_who_is_held_who_is_refused_and_the_groups(host: Host) -> None:
    hostile = {**SAMPLE["clients"]["top"][1], "client_id": "[red]x:fire:[/b]\x1b[2J"}
    clients = {**SAMPLE["clients"], "top": [*SAMPLE["clients"]["top"], hostile]}
    host.apply(SAMPLE, clients=clients)
    said = host.run("top", columns=200)
    assert (said.code, said.err) == (0, "")
    heading, group, app, strange, *rest = said.out.splitlines()
    assert heading.split() == ["CLIENT", "PRODUCES", "LIMIT", "DELAY", "HELD", "PRODUCED", "READS"]
    assert group.split()[0] == "<group>ingest"
    assert "420 ms" in group
    assert "12 s" in group
    assert app.split()[0] == "app"
    assert strange.startswith("[red]x:fire:[/b]\ufffd[2J"), "what a client calls itself is text"
    assert "\x1b" not in said.out
    assert 'User:alice with client id "loader": 7 produce requests refused' in rest
    assert "group ingest: produce 900K/s, request 50 %, 2 of 8 partitions led here" in rest
    assert "  produces 1.00M/s, produced 5.00M, held 12 s, 7 requests refused" in rest
    host.apply(SAMPLE, clients=clients)  # on a busy machine the first one may be stale by now
    assert host.run("top", "--json").document["known"] == 3
    host.apply(SAMPLE, clients=clients)
    assert "and 2 more" in host.run("top", "--count", "1").out
    host.apply(SAMPLE, clients=clients)
    assert "[red]x:fire:[/b]\ufffd[2J" in host.run("top", columns=60).out.splitlines()


def test_it_shows_what_topics_at_stake_do_to_their_clients(host: Host) -> None:
    one = SAMPLE["clients"]["top"][0]
    top = [one | {"factor": 0.0}, one | {"user": "b", "factor": 0.125}, one | {"user": "c"}]
    host.apply(SAMPLE, clients={**SAMPLE["clients"], "top": top})
    heading, *rows = host.run("top", columns=120).out.splitlines()
    assert heading.split()[-1] == "TOPICS"
    assert [row.split()[-1] for row in rows[:3]] == ["paused", "0.12", "-"]
    host.apply(SAMPLE, clients={**SAMPLE["clients"], "top": top})
    narrow = host.run("top", columns=60).out
    assert "its topics at stake paused" in narrow
    assert "its topics at stake to 0.12" in narrow


def test_in_a_narrow_terminal_names_give_way_and_figures_do_not(host: Host) -> None:
    long = {**SAMPLE["clients"]["top"][0], "user": "x" * 60, "client_id": "y" * 60}
    host.apply(SAMPLE, clients={**SAMPLE["clients"], "top": [long]})
    table = host.run("top", columns=80).out.splitlines()
    assert len(table[1]) <= 80
    assert table[1].split()[1:] == ["1.00M/s", "900K/s", "420", "ms", "12", "s", "5.00M", "0/s"]
    assert table[1].startswith("x" * 20)
    host.apply(SAMPLE, clients={**SAMPLE["clients"], "top": [long]})
    name, told, *_ = host.run("top", columns=60).out.splitlines()
    assert name == f"{'x' * 60} / {'y' * 60}"
    assert told == "  produces 1.00M/s, limit 900K/s, delay 420 ms, held 12 s, produced 5.00M, reads 0/s"


def test_without_a_report_of_clients_it_says_why(host: Host) -> None:
    missing = host.run("top")
    assert missing.code == 1
    assert str(host.applied_file) in missing.err
    host.apply({key: value for key, value in SAMPLE.items() if key != "clients"})
    assert "reports no clients" in host.run("top").err
