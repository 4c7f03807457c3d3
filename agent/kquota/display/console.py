"""Standard output for people."""

from __future__ import annotations

from rich.console import Console


def console_for_people(*, soft_wrap: bool = False) -> Console:
    """Return standard output for tables and lines, in which names are shown as they are.

    A name that a client chose is neither markup nor an emoji.
    """
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=soft_wrap)
