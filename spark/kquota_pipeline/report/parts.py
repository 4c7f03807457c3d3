"""Parts that several sections of the page have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kquota_pipeline.report.markup import Markup, element

MAX_ROWS = 40
"""The most rows of a table."""
Cluster = Mapping[str, Any]


def volume_name(row: Mapping[str, Any]) -> str:
    """Return how a volume is called."""
    return f"broker {row['broker_id']} {row['volume_name']}"


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Sequence[int] | range = (),
    chosen: str | None = None,
    bad: int | None = None,
) -> Markup:
    """Return a table that scrolls in itself where it is too wide; columns in `numbers` are set to the right,
    the row that begins with `chosen` stands out, and a cell of the column `bad` that is not "no".
    """
    head = [
        element("th", name, class_="n" if number in numbers else None) for number, name in enumerate(columns)
    ]
    body = []
    for row in rows:
        cells = []
        for number, cell in enumerate(row):
            kind = "n" if number in numbers else ("bad" if number == bad and cell != "no" else None)
            cells.append(element("td", cell, class_=kind))
        body.append(element("tr", *cells, class_="chosen" if row[0] == chosen else None))
    whole = element("table", element("thead", element("tr", *head)), element("tbody", *body))
    return element("div", whole, class_="scroll")
