"""Results on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.figures import KINDS
from bench.harness.results import Saved, Store, UnreadableResults
from tests.unit.bench.measurements import FIGURES, MACHINE

SAVED = Saved("pause-java-1-5s", "2026-11-21T10:00:00+00:00", 12.5, 1.5, MACHINE, FIGURES)


def test_a_saved_measurement_is_read_back_unchanged(tmp_path: Path):
    path = tmp_path / "results" / "bench.jsonl"
    Store(path, KINDS).save(SAVED)
    assert Store(path, KINDS).load([SAVED.name]) == [SAVED]


def test_a_repeated_measurement_replaces_the_first_and_leaves_the_others(tmp_path: Path):
    path = tmp_path / "bench.jsonl"
    another = replace(SAVED, name="another")
    again = replace(SAVED, figures=())
    store = Store(path, KINDS)
    for saved in (SAVED, another, again):
        store.save(saved)
    assert Store(path, KINDS).load([SAVED.name, "another"]) == [again, another]
    assert len(path.read_text().splitlines()) == 2
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_measurement_is_left_out(tmp_path: Path):
    store = Store(tmp_path / "bench.jsonl", KINDS)
    store.save(SAVED)
    assert store.load(["another", SAVED.name]) == [SAVED]


def test_a_line_of_another_version_is_named(tmp_path: Path):
    path = tmp_path / "bench.jsonl"
    Store(path, KINDS).save(SAVED)
    with path.open("a") as file:
        file.write('{"name": "pause"}\n')
    with pytest.raises(UnreadableResults, match=rf"^{path}:2: not results of this version"):
        Store(path, KINDS)
