"""Results on disk, saved as they come: a file of JSON lines for each bench, a line for each measurement."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

Kind = TypeVar("Kind")
Figures = Sequence[object]
"""The measurements: values of the bench's own dataclasses."""


def of(kind: type[Kind], figures: Figures) -> list[Kind]:
    """Return the figures of one kind, in their order."""
    return [figure for figure in figures if isinstance(figure, kind)]


@dataclass(frozen=True, slots=True)
class Saved:
    """One measurement and how it came about."""

    name: str
    measured_at: str
    """ISO 8601, UTC."""
    seconds: float
    """How long it took; 0 where that is not known."""
    load: float
    """Load average over the last minute when it began."""
    machine: str
    figures: tuple[object, ...]


class UnreadableResults(Exception):
    """A line of results can't be used; the message names it and gives the cause."""


class Store:
    """The measurements in one file, which need not exist; figures are of one of `kinds`.

    Raises:
        UnreadableResults: a line is not what this version writes.
    """

    def __init__(self, path: Path, kinds: Iterable[type]) -> None:
        self._path = path
        self._kinds: dict[str, TypeAdapter[Any]] = {kind.__name__: TypeAdapter(kind) for kind in kinds}
        self._saved: dict[str, Saved] = {}
        lines = path.read_bytes().splitlines() if path.exists() else []
        for number, line in enumerate(lines, start=1):
            try:
                saved = self._read(json.loads(line))
            except (ValidationError, ValueError, KeyError, TypeError) as error:
                raise UnreadableResults(
                    f"{path}:{number}: not results of this version ({error}); remove it and measure again"
                ) from None
            self._saved[saved.name] = saved

    def save(self, saved: Saved) -> None:
        """Write one measurement; it replaces one of the same name."""
        self._saved[saved.name] = saved
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_suffix(".tmp")
        entries = sorted(self._saved.values(), key=lambda entry: entry.name)
        temporary.write_text("".join(f"{_line(entry)}\n" for entry in entries), "utf-8")
        temporary.replace(self._path)

    def load(self, names: Iterable[str]) -> list[Saved]:
        """Return the measurements of these names that are saved, in that order."""
        return [self._saved[name] for name in names if name in self._saved]

    def _read(self, document: dict[str, Any]) -> Saved:
        figures = document.pop("figures").items()
        read = (self._kinds[kind].validate_python(entry) for kind, entries in figures for entry in entries)
        return Saved(**document, figures=tuple(read))


def _line(saved: Saved) -> str:
    by_kind: dict[str, list[object]] = {}
    for figure in saved.figures:
        by_kind.setdefault(type(figure).__name__, []).append(asdict(figure))  # type: ignore[call-overload]
    document = {name: getattr(saved, name) for name in ("name", "measured_at", "seconds", "load", "machine")}
    return json.dumps({**document, "figures": by_kind}, ensure_ascii=False, separators=(",", ":"))
