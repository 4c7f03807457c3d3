"""``python -m tools.mutants``: judge the last campaigns of mutants, and write docs/mutants.md.

``tests/mutants/seen.json`` keeps the results; each file in ``build/mutants`` replaces its half.
With ``--check`` the page is only seen to be fresh.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import yaml

from tools.freshness import asked_only_to_check, kept_fresh
from tools.mutants.results import BUILD, LISTS, REPOSITORY, Results, score

PAGE = REPOSITORY / "docs/mutants.md"
COMMAND = "make mutants"
# The score that each part has to have, in percent.
TARGETS = {
    "python": {"core": 95, "fold": 85, "host": 85, "observe": 85, "write": 85},
    "java": {
        "decision": 95,
        "quota": 95,
        "govern/GovernorLaw": 95,
        "fence": 85,
        "govern": 85,
        "group": 85,
        "share": 85,
        "threshold": 85,
    },
}
TITLES = {"python": "The agent", "java": "The plug-in"}
INTRODUCTION = """\
# Mutants

<!-- Made by `make mutants`: do not edit. -->

A mutant is the code with one small change: a comparison turned, an argument left out, a number one higher.
A mutant that no test notices is a place where broken code would pass. `make mutants` makes all mutants of
the parts below with [mutmut](https://mutmut.readthedocs.io) and [PIT](https://pitest.org), and runs the
part's own tests on each. It fails when a score is below its target, and when the list of equivalent mutants
names one that does not survive.

| command | what it does |
|---|---|
| `make mutants` | both campaigns, then this page |
| `make mutants-python` | the agent's rooms |
| `make mutants-python MUTANTS_ARGS="--resume"` | only what no test has killed yet |
| `make mutants-java` | the plug-in's packages |
| `make mutants-page` | no campaign: judges the last ones, and writes this page |

The score is the killed mutants divided by all that are not equivalent. A mutant that runs into its time limit
counts as killed. A mutant is equivalent if no input can distinguish it from the code. The lists in
`tests/mutants` give the reasons. No test has noticed the other survivors yet.
"""
COLUMNS = ("killed", "timed_out", "survived", "no_coverage", "equivalent")


def missed(seen: dict[str, Results]) -> Iterator[str]:
    """Yield the parts that are below their targets, or were not measured."""
    for half, targets in TARGETS.items():
        packages = seen.get(half, {"packages": {}})["packages"]
        for name, target in targets.items():
            if name not in packages:
                yield f"{name}: not measured"
            elif score(packages[name]) < target:
                yield f"{name}: {score(packages[name]):.1f} % of the mutants are killed, below {target} %"


def page(seen: dict[str, Results], equivalents: dict[str, list[dict[str, Any]]]) -> str:
    """Return the whole page."""
    return "\n".join(
        [INTRODUCTION, *(line for half in TARGETS for line in _half(half, seen, equivalents[half]))]
    )


def _half(half: str, seen: dict[str, Results], equivalents: list[dict[str, Any]]) -> Iterator[str]:
    yield f"## {TITLES[half]}\n"
    if half not in seen:
        yield "Not measured yet.\n"
        return
    titles = (
        "part",
        "killed",
        "time limit",
        "survived",
        "no test reaches it",
        "equivalent",
        "score",
        "target",
    )
    yield f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}"
    for name, counts in seen[half]["packages"].items():
        figures = " | ".join(str(counts[column]) for column in COLUMNS)
        yield f"| `{name}` | {figures} | {score(counts):.1f} % | {TARGETS[half][name]} % |"
    yield "\n### Equivalent mutants\n"
    for entry in equivalents:
        where = entry.get("file") or entry["class"]
        function = entry.get("function") or entry["method"]
        change = _code(
            f"{entry['was']} → {entry['becomes']}"
            if "was" in entry
            else f"{entry['mutator']}: {entry['text']}"
        )
        yield f"- `{where}`, `{function}`: {change}. {entry['why']}"
    yield "" if equivalents else "None.\n"
    yield "### Survivors\n"
    for survivor in seen[half]["survivors"]:
        yield f"- `{survivor['file']}:{survivor['line']}`, {survivor['mutator']}: {_code(survivor['text'])}"
    yield "" if seen[half]["survivors"] else "None.\n"


def _code(text: str) -> str:
    shown = " ".join(text.split())
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def main() -> int:
    """Keep what the campaigns left, write the page; return 1 when a target is missed or the page is stale."""
    check = asked_only_to_check("python -m tools.mutants", __doc__)
    kept = LISTS / "seen.json"
    seen: dict[str, Results] = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    if not check:
        new = {half: BUILD / f"{half}.json" for half in TARGETS}
        seen |= {half: json.loads(file.read_text("utf-8")) for half, file in new.items() if file.exists()}
        kept.write_text(json.dumps(seen, indent=1, ensure_ascii=False) + "\n", "utf-8")
    lists = {half: LISTS / f"equivalent-{half}.yml" for half in TARGETS}
    equivalents = {half: yaml.safe_load(file.read_text("utf-8")) or [] for half, file in lists.items()}
    fresh = kept_fresh(PAGE, page(seen, equivalents), check=check, command=COMMAND)
    if check:
        return 0 if fresh else 1
    problems = list(missed(seen))
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
