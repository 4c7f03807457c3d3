"""One table: the same rows for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.table import Table

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Rows:
    """Its title, its columns and its rows, all text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    @classmethod
    def of(
        cls,
        title: str,
        entries: Iterable[Entry],
        columns: Sequence[tuple[str, Callable[[Entry], str]]],
        note: str = "",
    ) -> Rows:
        """A row for each entry: a column is its heading, and what it says of an entry."""
        cells = tuple(tuple(cell(entry) for _, cell in columns) for entry in entries)
        return cls(title, tuple(heading for heading, _ in columns), cells, note)

    def markdown(self) -> str:
        """As Markdown."""
        lines = [f"## {self.title}", "", *([self.note, ""] if self.note else [])]
        lines += [_line(self.columns), _line(["---"] * len(self.columns)), *map(_line, self.rows)]
        return "\n".join(lines) + "\n"

    def table(self) -> Table:
        """For a terminal of 80 columns."""
        table = Table(title=self.title, title_justify="left", padding=(0, 1), pad_edge=False, box=None)
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="left" if number == 0 else "right", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
