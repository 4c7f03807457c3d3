"""A volume as a bar, with a mark at its soft and at its hard limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from kquota.display.figures import headroom_style

_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")


def usage_bar(volume: Mapping[str, Any], cells: int, *, ascii_only: bool = False) -> Text:
    """Draw consumption over the capacity, in this many cells; a cell with a mark shows only the mark."""
    full, empty, soft_mark, hard_mark = "#.:|" if ascii_only else "█·┆┃"
    capacity = volume["capacity_bytes"]
    if not capacity:
        return Text("?" * cells, style="dim")
    eighths = min(round(8 * cells * volume["consumed_bytes"] / capacity), 8 * cells)
    whole, rest = divmod(eighths, 8)
    filled = full * (whole + (rest >= 4)) if ascii_only else full * whole + _EIGHTHS[rest]
    marks = {
        min(int(cells * volume[key] / capacity), cells - 1): (mark, style)
        for key, mark, style in (
            ("soft_bytes", soft_mark, "bold yellow"),
            ("hard_bytes", hard_mark, "bold red"),
        )
        if volume[key] is not None and 0 <= volume[key] <= capacity
    }
    drawn = filled.ljust(cells, empty)
    parts: list[Text | str | tuple[str, str]] = []
    at = 0
    for end in sorted({len(filled), cells, *marks, *(mark + 1 for mark in marks)}):
        style = headroom_style(volume["headroom"]) if at < len(filled) else "dim"
        if end > at:
            parts.append(marks.get(at, (drawn[at:end], style)))
        at = end
    return Text.assemble(*parts)
