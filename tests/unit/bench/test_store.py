"""Results on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.results import Results
from bench.store import Saved, Store, UnreadableResults
from tests.unit.bench.measurements import MACHINE, RESULTS

SAVED = Saved("pause-java-1-5s", "2026-11-21T10:00:00+00:00", 12.5, 1.5, MACHINE, RESULTS)


def test_a_saved_measurement_is_read_back_unchanged(tmp_path: Path):
    path = tmp_path / "results" / "bench.jsonl"
    Store(path).save(SAVED)
    assert Store(path).load([SAVED.name]) == [SAVED]


def test_a_repeated_measurement_replaces_the_first_and_leaves_the_others(tmp_path: Path):
    path = tmp_path / "bench.jsonl"
    another = replace(SAVED, name="another")
    again = replace(SAVED, results=Results())
    store = Store(path)
    for saved in (SAVED, another, again):
        store.save(saved)
    assert Store(path).load([SAVED.name, "another"]) == [again, another]
    assert len(path.read_text().splitlines()) == 2
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_measurement_is_left_out(tmp_path: Path):
    store = Store(tmp_path / "bench.jsonl")
    store.save(SAVED)
    assert store.load(["another", SAVED.name]) == [SAVED]
    assert store.has(SAVED.name)
    assert not store.has("another")


def test_a_line_of_another_version_is_named(tmp_path: Path):
    path = tmp_path / "bench.jsonl"
    Store(path).save(SAVED)
    with path.open("a") as file:
        file.write('{"name": "pause"}\n')
    with pytest.raises(UnreadableResults, match=rf"^{path}:2: not results of this version"):
        Store(path)


def test_parts_are_put_together_in_their_order():
    assert Results.together([RESULTS, Results(), RESULTS]).paused == RESULTS.paused * 2
