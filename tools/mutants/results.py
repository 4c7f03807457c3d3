"""The common part of both languages' campaigns: a mutant, the lists of equivalent ones, and the score."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
LISTS = REPOSITORY / "tests/mutants"
BUILD = REPOSITORY / "build/mutants"
ALIVE = ("survived", "no_coverage")
KEYS = ("killed", "survived", "no_coverage", "timed_out", "equivalent")
Results = Mapping[str, Any]
"""``packages``: the mutants of each part, counted by fate; ``survivors``: file, line, mutator, text."""


class CanNotBeJudged(Exception):
    """A campaign can not be judged: it is not finished, or the list of equivalents does not fit it."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of the code; ``outcome`` is one of ``KEYS``, or "not_tried"."""

    part: str
    file: str
    line: int
    mutator: str
    text: str
    outcome: str
    place: Mapping[str, str]
    """How the list of equivalents names it: an entry has the same values, and of ``text`` a part."""


def judged(
    half: str,
    mutants: Sequence[Mutant],
    chosen: Callable[[str], bool] = lambda _place: True,
    count: int | None = None,
) -> Results:
    """Return the results of a campaign, with the equivalents of the repository's list.

    Of the list only entries whose first value is ``chosen`` have to match.

    Raises:
        CanNotBeJudged: an entry has no reason, or matches no survivor, or another number than its ``count``,
            of which the argument is the default.
    """
    listed = yaml.safe_load((LISTS / f"equivalent-{half}.yml").read_text("utf-8")) or []
    return summed_up(mutants, [entry for entry in listed if chosen(next(iter(entry.values())))], count)


def summed_up(
    mutants: Sequence[Mutant], entries: Iterable[dict[str, Any]], count: int | None = None
) -> Results:
    """Return the results; see ``judged``."""
    survivors = [mutant for mutant in mutants if mutant.outcome in ALIVE]
    equivalent: set[int] = set()
    for entry in entries:
        named = {name: value for name, value in entry.items() if name not in ("why", "count")}
        matched = {id(mutant) for mutant in survivors if _matches(named, mutant.place)}
        if not entry.get("why"):
            raise CanNotBeJudged(f"the list of equivalent mutants gives no reason (why) for {entry}")
        if not matched or len(matched) != (entry.get("count", count) or len(matched)):
            raise CanNotBeJudged(f"{named} matches {len(matched)} survivors; correct the list of equivalents")
        equivalent |= matched
    counts: dict[str, Counter[str]] = {}
    for mutant in mutants:
        outcome = "equivalent" if id(mutant) in equivalent else mutant.outcome
        counts.setdefault(mutant.part, Counter())[outcome] += 1
    left = [mutant for mutant in survivors if id(mutant) not in equivalent]
    return {
        "packages": {name: {key: counts[name][key] for key in KEYS} for name in sorted(counts)},
        "survivors": [
            {n: getattr(mutant, n) for n in ("file", "line", "mutator", "text")} for mutant in left
        ],
    }


def _matches(named: Mapping[str, str], place: Mapping[str, str]) -> bool:
    return named.keys() == place.keys() and all(
        value in place[name] if name == "text" else value == place[name] for name, value in named.items()
    )


def score(counts: Mapping[str, int]) -> float:
    """Return the killed in percent of all that are not equivalent; the time limit kills, too."""
    killed = counts["killed"] + counts["timed_out"]
    return 100 * killed / (killed + counts["survived"] + counts["no_coverage"])


def kept(half: str, campaign: Callable[[], Results]) -> int:
    """Write a campaign's results to a file, print a line for each part, and return 0; 1 on failure."""
    try:
        results = campaign()
    except CanNotBeJudged as problem:
        print(problem, file=sys.stderr)
        return 1
    text = json.dumps(results, indent=1, ensure_ascii=False)
    (BUILD / f"{half}.json").write_text(f"{text}\n", "utf-8")
    for name, counts in results["packages"].items():
        print(f"{name}: {score(counts):.1f} %, {counts}")
    return 0
