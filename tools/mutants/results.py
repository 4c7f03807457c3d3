"""The common part of the campaigns of both languages: the form of their results, and the score."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol, TypedDict, TypeVar

ALIVE = ("survived", "no_coverage")
KEYS = ("killed", "survived", "no_coverage", "timed_out", "equivalent")


class CanNotBeJudged(Exception):
    """A campaign can not be judged: it is not finished, or the list of equivalents does not fit it."""


class Tried(Protocol):
    """A mutant, and what became of it."""

    @property
    def outcome(self) -> str:
        """One of ``KEYS``."""


class Survivor(TypedDict):
    """A mutant that no test kills."""

    file: str
    line: int
    mutator: str
    text: str


class Results(TypedDict):
    """The content of the JSON file: the number of mutants of each part by their fate, and the survivors."""

    packages: dict[str, dict[str, int]]
    survivors: list[Survivor]


_Mutant = TypeVar("_Mutant", bound=Tried)


def alive(mutants: Iterable[_Mutant]) -> list[_Mutant]:
    """Return those that no test has killed."""
    return [mutant for mutant in mutants if mutant.outcome in ALIVE]


def summed_up(
    mutants: Iterable[_Mutant],
    proved: set[_Mutant],
    part: Callable[[_Mutant], str],
    survivor: Callable[[_Mutant], Survivor],
) -> Results:
    """Return what goes into the JSON file; ``proved`` are the survivors that are equivalent."""
    mutants = list(mutants)
    counts: dict[str, Counter[str]] = {}
    for mutant in mutants:
        outcome = "equivalent" if mutant in proved else mutant.outcome
        counts.setdefault(part(mutant), Counter())[outcome] += 1
    return {
        "packages": {name: {key: counts[name][key] for key in KEYS} for name in sorted(counts)},
        "survivors": [survivor(mutant) for mutant in alive(mutants) if mutant not in proved],
    }


def score(counts: Mapping[str, int]) -> float:
    """Return the killed in percent of all that are not equivalent; the time limit kills, too."""
    killed = counts["killed"] + counts["timed_out"]
    return 100 * killed / (killed + counts["survived"] + counts["no_coverage"])


def keep(results: Results, file: Path) -> None:
    """Write the JSON file, and print a line for each part."""
    file.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
    for name, counts in results["packages"].items():
        print(f"{name}: {score(counts):.1f} %, {counts}")
