"""Pieces of Markdown that every page is made of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence


def head(title: str, *paragraphs: str, origin: str) -> list[str]:
    """Return the top of a page that is made by ``python -m tools.reference``."""
    note = f"<!-- Written by `python -m tools.reference` from {origin}. Do not edit. -->"
    return [f"# {title}", "", note, "", *(line for text in paragraphs for line in (text, ""))]


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table; a cell may have several lines and contain bars."""
    lines = [_row(headings), "|" + "---|" * len(headings)]
    return [*lines, *(_row(row) for row in rows), ""]


def code(value: object) -> str:
    """Return a value as inline code, as JSON unless it is text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"`{text}`" if text else '`""`'


def sentence(text: str) -> str:
    """Return prose for a table's cell: no markup of its own, a full stop at its end."""
    text = " ".join(text.split()).replace("<", "&lt;").replace("*", "\\*")
    return text if text.endswith((".", "!", "?", "`", ":")) or not text else f"{text}."


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
