"""Damaged input against every reader of strangers' input.

`make test` tries the same examples each time; `make fuzz` tries new ones, many times as many. Findings
are put into regressions/<reader>/ and read in every run from then on.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.fuzz.mutation import damaged
from tests.fuzz.targets import TARGETS, Target

REGRESSIONS = Path(__file__).with_name("regressions")
SCALE = int(os.environ.get("KQUOTA_FUZZ_SCALE", "1"))
SEED = int(os.environ.get("KQUOTA_FUZZ_SEED", "20261120"))


@pytest.mark.accepts("F5", "F6")
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_damaged_input_is_read_or_refused_and_never_breaks_the_reader(target: Target, tmp_path: Path) -> None:
    lots, corpus = random.Random(SEED), target.corpus()
    for number in range(target.examples * SCALE):
        example = damaged(lots, corpus)
        try:
            target.read(example)
        except Exception:
            found = tmp_path / f"{target.name}-{SEED}-{number}"
            found.write_bytes(example)
            print(f"seed {SEED}, example {number}: kept as {found}; move it to regressions/{target.name}/")
            raise


@pytest.mark.accepts("F5", "F6")
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_what_was_once_found_stays_mended(target: Target) -> None:
    samples = [path.read_bytes() for path in sorted((REGRESSIONS / target.name).glob("*"))]
    for sample in (*samples, *target.corpus()):
        target.read(sample)


def test_damage_is_the_same_for_the_same_seed_and_reaches_the_input() -> None:
    corpus = TARGETS[0].corpus()
    first, second = ([damaged(random.Random(7), corpus) for _ in range(20)] for _ in range(2))
    assert first == second
    assert any(example not in corpus for example in first)
