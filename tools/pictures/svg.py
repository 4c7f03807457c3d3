"""A terminal's picture as SVG that loads nothing from elsewhere."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console, RenderableType
from rich.terminal_theme import MONOKAI

_WEB_FONT = re.compile(r"@font-face \{\{.*?\n\s*\}\}\n", re.DOTALL)
_FORMAT = _WEB_FONT.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code, monospace", "monospace")


def save_svg(picture: RenderableType, file: Path, *, columns: int, title: str) -> None:
    """Draw the picture of a terminal of this many columns."""
    console = Console(
        record=True, file=io.StringIO(), width=columns, height=60, force_terminal=True, highlight=False
    )
    console.print(picture)
    svg = console.export_svg(title=title, theme=MONOKAI, code_format=_FORMAT, unique_id=file.stem)
    if "url(" in svg.replace("url(#", ""):
        raise ValueError(f"{file}: the picture loads something from elsewhere")
    file.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", "utf-8")
