"""docs/failure-modes-seen.yml: what the last whole run of each fault's tests measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from tools.faults.run import Outcome

_HEAD = "# What the last runs of `make fault` and `make faults` saw. Written by them; do not edit.\n"


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one fault; seconds are None where no test measures them."""

    date: str
    tests: int
    safe_seconds: float | None
    recovery_seconds: float | None


def keep_seen(path: Path, outcomes: Mapping[str, Outcome]) -> None:
    """Keep what a run saw of the faults that were survived in all their tests."""
    seen = dict(read_seen(path))
    for id_, outcome in outcomes.items():
        if outcome.survived:
            times = _rounded(outcome.safe_seconds), _rounded(outcome.recovery_seconds)
            seen[id_] = Figures(outcome.date, outcome.passed, *times)
    rows = {id_: asdict(seen[id_]) for id_ in sorted(seen, key=lambda id_: int(id_[1:]))}
    lines = [f"{id_}: {_in_one_line(row)}\n" for id_, row in rows.items()]
    path.write_text(_HEAD + "".join(lines), "utf-8")


def read_seen(path: Path) -> Mapping[str, Figures]:
    """Return the figures by fault; none where there was no run."""
    rows = yaml.safe_load(path.read_text("utf-8")) if path.is_file() else None
    return {id_: Figures(**row) for id_, row in (rows or {}).items()}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def _in_one_line(row: Mapping[str, object]) -> str:
    return yaml.safe_dump(dict(row), sort_keys=False, default_flow_style=True, width=200).strip()
