"""The commands that show the last look at the segments, with a real segments file."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kquota.cli.configuration import settings_of
from kquota.cli.topic_sizes import expiry_sentence
from kquota.policy.timestamps import format_utc
from tests.unit.cli.command import Host
from tests.unit.policy.golden import sample

SAMPLE = sample("segments", "a-volume")


@pytest.fixture
def looked(host: Host) -> Host:
    write(host)
    return host


def write(host: Host, *, age_seconds: float = 60, **changes: Any) -> None:
    at = format_utc(datetime.now(UTC) - timedelta(seconds=age_seconds))
    file = settings_of(host.config).decision_file.with_name("segments.json")
    file.write_text(json.dumps({**SAMPLE, "At": at, **changes}))
    file.chmod(0o644)


def test_volumes_show_when_their_bytes_leave_and_their_topics(looked: Host) -> None:
    said = looked.run("volumes", "--topics", columns=100)
    assert (said.code, said.err) == (0, "")
    assert (
        "/dev/sda1: 3.00G leaves within 10 minutes, 6.00G leaves within 1 hour, 12.0G leaves within 7 days,"
        " 9.00G never leaves by itself, 1.00G is stray: of partitions that this broker does not have,"
        " 1.00G is of deleted topics and leaves within minutes"
    ) in " ".join(said.out.split())
    assert "orders" in said.out
    assert "note: it is not known when the bytes of 3 topics leave" in said.out
    document = looked.run("volumes", "--topics", "--json").document
    assert document["Expiry"] == SAMPLE["Expiry"]


def test_top_shows_the_largest_topics_with_growth_and_what_leaves_within_the_hour(looked: Host) -> None:
    lines = looked.run("top", "--topics", columns=100).out.splitlines()
    assert lines[0].split() == ["TOPIC", "VOLUME", "BYTES", "GROWTH", "LEAVES", "IN", "1H"]
    assert lines[1].split() == ["orders", "/dev/sda1", "24.0G", "-200K/s", "9.00G"]
    assert lines[2].split() == ["payments", "/dev/sda1", "8.00G", "0/s", "0"]
    assert lines[3:5] == ["and 41 more", "looked at 60s ago"]
    assert looked.run("top", "--topics", "--count", "1").out.splitlines()[2] == "and 42 more"
    assert looked.run("top", "--topics", "--json").document == SAMPLE["Topics"]


@pytest.mark.parametrize("columns", [80, 170])
@pytest.mark.parametrize("command", ["top", "volumes"])
def test_one_long_name_takes_no_other_column_s_room(host: Host, command: str, columns: int) -> None:
    (volume, *others) = SAMPLE["Topics"]["Volumes"]
    (topic, *more) = volume["Topics"]
    named = {**volume, "Topics": [{**topic, "Topic": "x" * 249}, *more]}
    write(host, Topics={**SAMPLE["Topics"], "Volumes": [named, *others]})
    lines = host.run(command, "--topics", columns=columns).out.splitlines()
    (row,) = [line for line in lines if "xxx" in line]
    assert row.split()[-4:] == ["/dev/sda1", "24.0G", "-200K/s", "9.00G"]
    assert all(len(line) <= columns for line in lines if line.startswith(("TOPIC", "x", "payments")))


def test_without_a_look_before_there_is_no_growth(host: Host) -> None:
    first = sample("history", "topics-of-a-first-look")
    write(host, Topics=first["Body"])
    assert host.run("top", "--topics").out.splitlines()[1].split()[3] == "-"


def test_without_a_file_the_reason_is_named(host: Host) -> None:
    said = host.run("top", "--topics")
    assert said.code == 1
    assert "the agent writes it after its first look at the segments" in said.err


def test_the_line_of_explain_needs_a_look_of_this_volume_that_is_young(looked: Host) -> None:
    settings = settings_of(looked.config)
    expected = "Volume /dev/sda1: 24 GB to free; 10 GB of it leaves by itself within 1 hour."
    assert expiry_sentence(settings, "/dev/sda1", 24e9) == expected
    assert expiry_sentence(settings, "/dev/sdb1", 24e9) is None
    write(looked, age_seconds=1801)
    assert expiry_sentence(settings, "/dev/sda1", 24e9) is None
