"""What was measured, saved as it comes: a file per step, so that `--resume` measures what is missing."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.pipeline.foretold import Accuracy


@dataclass(frozen=True, slots=True)
class Figure:
    """What one work cost one engine: CPU and wall seconds of each repetition, and the answer of all."""

    engine: str
    cores: int
    days: int
    rows: int
    work: str
    answer: Mapping[str, float]
    cpu_seconds: Sequence[float]
    wall_seconds: Sequence[float]

    @property
    def cpu(self) -> float:
        """Return the median of the CPU seconds."""
        return statistics.median(self.cpu_seconds)

    @property
    def wall(self) -> float:
        """Return the median of the wall seconds."""
        return statistics.median(self.wall_seconds)


@dataclass(frozen=True, slots=True)
class Saved:
    """One step: the figures of a lane, what an ingest gave, or how good forecasts were; when, in how long and
    under which load.
    """

    step: str
    measured_at: str
    seconds: float
    load: float
    machine: str
    figures: Sequence[Figure]
    ingest: Mapping[str, float] | None = None
    accuracy: Sequence[Accuracy] = ()


class Store:
    """A folder of saved steps."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, saved: Saved) -> None:
        """Write a step in the place of one of that name."""
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = self._path(saved.step).with_suffix(".tmp")
        unfinished.write_text(json.dumps(asdict(saved), indent=1) + "\n", "utf-8")
        unfinished.replace(self._path(saved.step))

    def load(self, step: str) -> Saved | None:
        """Return a step, or None where it has not been measured."""
        path = self._path(step)
        if not path.exists():
            return None
        found = json.loads(path.read_text("utf-8"))
        return Saved(**{**found, "figures": [Figure(**figure) for figure in found["figures"]]})

    def _path(self, step: str) -> Path:
        return self._folder / f"{step}.json"
