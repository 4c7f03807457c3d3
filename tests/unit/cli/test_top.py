"""``kquota top`` with a real applied-state file."""

from __future__ import annotations

import json

from tests.unit.cli.command import Host
from tests.unit.core.golden import SAMPLES

SAMPLE = json.loads((SAMPLES / "applied" / "valid" / "clients.json").read_text("utf-8"))


def test_it_shows_who_produces_who_is_held_who_is_refused_and_the_groups(host: Host) -> None:
    hostile = {**SAMPLE["clients"]["top"][1], "client_id": "[red]x[/red]\x1b[2J"}
    host.apply(SAMPLE, clients={**SAMPLE["clients"], "top": [*SAMPLE["clients"]["top"], hostile]})
    said = host.run("top", columns=200)
    assert (said.code, said.err) == (0, "")
    heading, group, app, strange, *rest = said.out.splitlines()
    assert heading.split() == ["CLIENT", "PRODUCES", "LIMIT", "DELAY", "HELD", "PRODUCED", "READS"]
    assert group.split()[0] == "<group>ingest"
    assert "420 ms" in group
    assert "12 s" in group
    assert app.split()[0] == "app"
    assert strange.startswith("[red]x[/red]"), "what a client calls itself is text"
    assert "\x1b" not in said.out
    assert 'User:alice with client id "loader": 7 produce requests refused' in rest
    assert any(line.startswith("group ingest: produce") and "2 of 8 partitions" in line for line in rest)
    assert host.run("top", "--json").document["known"] == 3
    assert "and 2 more" in host.run("top", "--count", "1").out


def test_without_a_report_of_clients_it_says_why(host: Host) -> None:
    missing = host.run("top")
    assert missing.code == 1
    assert str(host.applied_file) in missing.err
    host.apply({key: value for key, value in SAMPLE.items() if key != "clients"})
    assert "reports no clients" in host.run("top").err
