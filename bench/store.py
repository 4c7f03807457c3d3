"""Results on disk, saved as they come: a file of JSON lines, one line for each measurement.

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
    """A line of results can't be used; the message names it and gives the cause."""


_ADAPTER = TypeAdapter(Saved)


class Store:
    """The measurements in one file, which need not exist.

    Raises:
        UnreadableResults: a line is not what this version writes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._saved: dict[str, Saved] = {}
        lines = path.read_bytes().splitlines() if path.exists() else []
        for number, line in enumerate(lines, start=1):
            try:
                saved = _ADAPTER.validate_json(line)
            except ValidationError as error:
                raise UnreadableResults(
                    f"{path}:{number}: not results of this version ({error.error_count()} errors, first: "
                    f"{error.errors()[0]['msg']}); remove this line and measure again"
                ) from None
            self._saved[saved.name] = saved

    def save(self, saved: Saved) -> None:
        """Write one measurement; it replaces one of the same name."""
        self._saved[saved.name] = saved
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_suffix(".tmp")
        entries = sorted(self._saved.values(), key=lambda entry: entry.name)
        temporary.write_bytes(b"".join(_ADAPTER.dump_json(entry) + b"\n" for entry in entries))
        temporary.replace(self._path)

    def load(self, names: Iterable[str]) -> list[Saved]:
        """Return the measurements of these names that are saved, in that order."""
        return [self._saved[name] for name in names if name in self._saved]

    def has(self, name: str) -> bool:
        """Return whether a measurement of that name is saved."""
        return name in self._saved
