"""``kquota topics`` as operators use it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.command import Said, kquota


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "topics.json"


def topics(file: Path, *arguments: str) -> Said:
    return kquota("topics", *arguments, "--file", str(file))


@pytest.mark.accepts("D1", "D2")
def test_thresholds_are_set_changed_shown_and_removed(file: Path) -> None:
    assert "nothing is held" in topics(file, "show").out
    assert topics(file, "total", "100M").code == 0
    assert topics(file, "set", "orders", "40M").code == 0
    assert json.loads(file.read_text()) == {
        "schema_version": 1,
        "total.bytes.in.per.sec.threshold": 100_000_000,
        "topics": {"orders": {"bytes.in.per.sec.threshold": 40_000_000}},
    }
    assert file.stat().st_mode & 0o777 == 0o644
    shown = topics(file, "show").out
    assert "orders" in shown
    assert "40,000,000 B/s" in shown
    assert "60,000,000 B/s" in shown
    assert topics(file, "show", "--json").document["topics"].keys() == {"orders"}

    before = file.read_bytes()
    rejected = topics(file, "set", "events", "61M")
    assert rejected.code == 2
    assert "nothing was changed: the thresholds of single topics add up to 101000000" in rejected.err
    assert topics(file, "total", "39M").code == 2
    assert file.read_bytes() == before

    assert topics(file, "unset", "orders").code == 0
    assert topics(file, "show", "--json").document["topics"] == {}
    assert topics(file, "off").code == 0
    assert not file.exists()


def test_what_is_not_there_and_what_is_no_rate_is_said(file: Path) -> None:
    missing = topics(file, "set", "orders", "40M")
    assert missing.code == 2
    assert "kquota topics total" in missing.err
    topics(file, "total", "100M")
    assert "'orders' has no threshold of its own" in topics(file, "unset", "orders").err
    assert "'40MB' is no such rate" in topics(file, "set", "orders", "40MB").err


def test_a_broken_file_is_named_with_its_key_and_left_alone(file: Path) -> None:
    file.write_text('{"schema_version": 1, "total.bytes.in.per.sec.threshold": "100M"}')
    said = topics(file, "total", "100M")
    assert said.code == 78
    assert f"{file}: total.bytes.in.per.sec.threshold is '100M'" in said.err
    assert "100M" in file.read_text()
