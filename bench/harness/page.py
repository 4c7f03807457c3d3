"""Results and claims as a page of Markdown, and as tables for the terminal, from the same rows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.table import Table as TerminalTable

from bench.harness.claims import Claim
from bench.harness.results import Saved

Entry = TypeVar("Entry")
Columns = Sequence[tuple[str, Callable[[Entry], str]]]


@dataclass(frozen=True, slots=True)
class Table:
    """Its title, its columns and its rows, all text; a note above it and more below it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    below: str = ""

    @classmethod
    def of(
        cls, title: str, entries: Iterable[Entry], columns: Columns[Entry], note: str = "", below: str = ""
    ) -> Table:
        """A row for each entry: a column is its heading, and its value of an entry."""
        rows = tuple(tuple(cell(entry) for _, cell in columns) for entry in entries)
        return cls(title, tuple(heading for heading, _ in columns), rows, note, below)

    def turned(self) -> Table:
        """A column for each entry instead."""
        columns, *rows = zip(self.columns, *self.rows, strict=True)
        return Table(self.title, columns, tuple(rows), self.note, self.below)

    def markdown(self) -> str:
        """As Markdown."""
        lines = [_line(self.columns), _line(["---"] * len(self.columns)), *map(_line, self.rows)]
        return "\n\n".join(filter(None, (f"## {self.title}", self.note, "\n".join(lines), self.below))) + "\n"

    def terminal(self) -> TerminalTable:
        """For a terminal of 80 columns."""
        table = TerminalTable(
            title=self.title, title_justify="left", padding=(0, 1), pad_edge=False, box=None
        )
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="left" if number == 0 else "right", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table


def page(
    head: str, command: str, saved: Sequence[Saved], claims: Sequence[Claim], tables: Iterable[Table],
    missing: Sequence[str] = (),
) -> str:  # fmt: skip
    """Return the whole page; `head` is its title and introduction, `missing` was not measured."""
    title, _, text = head.partition("\n")
    parts = [
        title,
        f"\n<!-- Written by `{command}`. Do not edit. -->\n",
        text.strip() + "\n",
        _origin(command, saved),
    ]
    if missing:
        parts.append(f"Not yet measured: {', '.join(f'`{name}`' for name in missing)}.\n")
    parts += [table.markdown() for table in (claims_table(claims, command), *tables) if table.rows]
    return "\n".join(parts)


def claims_table(claims: Iterable[Claim], command: str = "") -> Table:
    """Return the claims, the measurements, and the missed aims with their causes."""
    ordered = sorted(claims, key=lambda claim: not claim.asserted)
    missed: dict[tuple[str, str], list[Claim]] = {}
    for claim in ordered:
        if not claim.holds and claim.cause:
            missed.setdefault((claim.cause, claim.idea), []).append(claim)
    below = "\n".join(
        f"- {'; '.join(f'{claim.name}: {claim.measured}' for claim in together)}. {_sentence(cause)}"
        f"{f' Next: {idea}.' if idea else ''}"
        for (cause, idea), together in missed.items()
    )
    return Table.of(
        "Claims (asserted) and aims",
        ordered,
        (("statement", lambda c: c.name), ("measured", lambda c: c.measured), ("", lambda c: c.outcome)),
        f"`{command}` fails where an asserted claim does not hold. An aim that is missed fails nothing.",
        below and f"What is missed, what we take for the cause, and what could come nearer:\n\n{below}",
    )


def _origin(command: str, saved: Sequence[Saved]) -> str:
    days = sorted({entry.measured_at[:10] for entry in saved})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    seconds, loads = sum(entry.seconds for entry in saved), [entry.load for entry in saved]
    took = f", in {seconds / 60:.0f} minutes" if seconds else ""
    machines = "; ".join(dict.fromkeys(entry.machine for entry in saved))
    return (
        f"Measured by `{command}` on {when}{took}. {machines}.\n"
        f"Load average when a measurement began: {min(loads):.1f} to {max(loads):.1f}.\n"
    )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
