"""Whether a page loads anything from another place than the site itself; links to be clicked do not count."""

from __future__ import annotations

import re
from pathlib import Path

_LOADS = re.compile(
    r"""<(?:script|img|iframe|source|audio|video)\b[^>]*\bsrc=["']?(?:https?:)?//[^>]*>"""
    r"""|<link\b[^>]*\bhref=["']?(?:https?:)?//[^>]*>"""
    r"""|url\(\s*["']?(?:https?:)?//[^)]*\)"""
    r"""|@import\s+["'](?:https?:)?//[^"']*["']""",
    re.IGNORECASE,
)


def loaded_from_elsewhere(site: Path) -> list[str]:
    """Return the addresses that pages, styles and pictures load from elsewhere, with their places."""
    return [
        f"{path.relative_to(site)}: {found[0]}"
        for path in sorted(site.rglob("*"))
        if path.suffix in (".html", ".css", ".svg")
        for found in _LOADS.finditer(path.read_text("utf-8"))
    ]
