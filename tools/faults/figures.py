"""docs/failure-modes-seen.yml: what the last run of all faults measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tools.faults.run import Outcome

_HEAD = "# What the last `make faults` saw, for docs/failure-modes.md. Written by it; do not edit.\n"


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one fault; seconds are None where no test measures them."""

    tests: int
    safe_seconds: float | None
    recovery_seconds: float | None


@dataclass(frozen=True, slots=True)
class Seen:
    """A run: when, on how many cores, and the figures of each fault by id."""

    date: str
    cores: int
    figures: Mapping[str, Figures]


def write_seen(path: Path, date: str, cores: int, outcomes: Mapping[str, Outcome]) -> None:
    """Keep a run."""
    faults = {
        id_: {
            "tests": outcome.passed,
            "safe_seconds": _rounded(outcome.safe_seconds),
            "recovery_seconds": _rounded(outcome.recovery_seconds),
        }
        for id_, outcome in outcomes.items()
    }
    document = {"date": date, "cores": cores, "faults": faults}
    path.write_text(_HEAD + yaml.safe_dump(document, sort_keys=False, default_flow_style=None), "utf-8")


def read_seen(path: Path) -> Seen | None:
    """Return the last run, None where there was none."""
    if not path.is_file():
        return None
    document = yaml.safe_load(path.read_text("utf-8"))
    figures = {id_: Figures(**row) for id_, row in document["faults"].items()}
    return Seen(str(document["date"]), int(document["cores"]), figures)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
