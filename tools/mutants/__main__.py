"""``python -m tools.mutants``: judge the last campaigns of mutants, and write build/mutants/mutants.md."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader

from tools.mutants.results import BUILD, LISTS, Results, score

PAGE = BUILD / "mutants.md"
# The score that each part has to have, in percent.
TARGETS = {
    "python": {"policy": 95, "formats": 95, "disks": 85, "guard": 85, "host": 85, "kafka": 85},
    "java": {
        "decision": 95,
        "quota": 95,
        "govern/GovernorLaw": 95,
        "admission": 85,
        "fence": 85,
        "govern": 85,
        "group": 85,
        "share": 85,
        "threshold": 85,
    },
}


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
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    template = environment.get_template("page.md.j2")
    return template.render(halves=TARGETS, seen=seen, equivalents=equivalents, score=score, code=_code)


def _code(text: str) -> str:
    shown = " ".join(text.split())
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def main() -> int:
    """Write the page of what the campaigns have left; return 1 when a target is missed."""
    results = {half: BUILD / f"{half}.json" for half in TARGETS}
    seen: dict[str, Results] = {
        half: json.loads(file.read_text("utf-8")) for half, file in results.items() if file.exists()
    }
    lists = {half: LISTS / f"equivalent-{half}.yml" for half in TARGETS}
    equivalents = {half: yaml.safe_load(file.read_text("utf-8")) or [] for half, file in lists.items()}
    BUILD.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(seen, equivalents), "utf-8")
    print(f"{PAGE} has the scores and the survivors")
    problems = list(missed(seen))
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
