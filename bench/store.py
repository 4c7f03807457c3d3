"""Results on disk, saved as they come: one JSON file for each measurement.

A run that ends early loses nothing, `--resume` measures what is missing, and `--judge-only` measures nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from bench.machine import Machine
from bench.results import Results


@dataclass(frozen=True, slots=True)
class Saved:
    """One measurement and how it came about."""

    name: str
    measured_at: str
    """ISO 8601, UTC."""
    seconds: float
    load: float
    """Load average over the last minute when it began."""
    machine: Machine
    results: Results


class UnreadableResults(Exception):
    """A file of results can't be used; the message names it and says why."""


_ADAPTER = TypeAdapter(Saved)


class Store:
    """A directory of results."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def save(self, saved: Saved) -> None:
        """Write one measurement; it replaces one of the same name."""
        self.directory.mkdir(parents=True, exist_ok=True)
        temporary = self.directory / f"{saved.name}.tmp"
        temporary.write_bytes(_ADAPTER.dump_json(saved, indent=1))
        temporary.replace(self._path(saved.name))

    def load(self, names: Iterable[str]) -> list[Saved]:
        """Those of that name that are there, in that order.

        Raises:
            UnreadableResults: a file is not what this version writes.
        """
        found = []
        for name in names:
            path = self._path(name)
            if not path.exists():
                continue
            try:
                found.append(_ADAPTER.validate_json(path.read_bytes()))
            except ValidationError as error:
                raise UnreadableResults(
                    f"{path}: not results of this version ({error.error_count()} errors, first: "
                    f"{error.errors()[0]['msg']}); remove it and measure again"
                ) from None
        return found

    def has(self, name: str) -> bool:
        """Whether there is one of that name."""
        return self._path(name).exists()

    def _path(self, name: str) -> Path:
        return self.directory / f"{name}.json"
