"""Results on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.results import Results
from bench.store import Saved, Store, UnreadableResults
from tests.unit.bench.measurements import MACHINE, RESULTS

SAVED = Saved("pause-java-1-5s", "2026-11-21T10:00:00+00:00", 12.5, 1.5, MACHINE, RESULTS)


def test_what_is_saved_is_read_back_as_it_was(tmp_path: Path):
    store = Store(tmp_path / "results")
    store.save(SAVED)
    assert store.load([SAVED.name]) == [SAVED]


def test_a_repeated_measurement_replaces_the_first(tmp_path: Path):
    store = Store(tmp_path)
    store.save(SAVED)
    again = replace(SAVED, results=Results())
    store.save(again)
    assert store.load([SAVED.name]) == [again]
    assert [path.name for path in tmp_path.iterdir()] == [f"{SAVED.name}.json"]


def test_what_is_missing_is_left_out_and_told(tmp_path: Path):
    store = Store(tmp_path)
    store.save(SAVED)
    assert store.load(["another", SAVED.name]) == [SAVED]
    assert store.has(SAVED.name)
    assert not store.has("another")


def test_a_file_of_another_version_is_named(tmp_path: Path):
    store = Store(tmp_path)
    (tmp_path / "pause.json").write_text('{"name": "pause"}')
    with pytest.raises(UnreadableResults, match=rf"^{tmp_path}/pause\.json: not results of this version"):
        store.load(["pause"])


def test_parts_are_put_together_in_their_order():
    assert Results.together([RESULTS, Results(), RESULTS]).paused == RESULTS.paused * 2
