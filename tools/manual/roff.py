"""The few man(7) macros that the pages use."""

from __future__ import annotations

from collections.abc import Iterable


def text(words: str) -> str:
    """Return words as one line of running text that no character of it can turn into a request."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("^", "\\(ha")
    escaped = escaped.replace("~", "\\(ti").replace("`", "\\(ga").replace('"', "\\(dq")
    return f"\\&{escaped}" if escaped.startswith(".") else escaped


def title(name: str, section: int, version: str, date: str) -> list[str]:
    """Return the head of a page; ``date`` is an ISO date."""
    return [f'.TH "{name.upper()}" "{section}" "{date}" "kquota {version}" "kquota"', ".nh", ".ad l"]


def heading(words: str) -> str:
    """Return the heading of a section."""
    return f'.SH "{text(words)}"'


def item(tag: str, meaning: str = "") -> list[str]:
    """Return a bold tag; its meaning, or what follows, is indented below it."""
    return [".TP", f"\\fB{text(tag)}\\fP", *([text(meaning)] if meaning else [])]


def sample(lines: Iterable[str]) -> list[str]:
    """Return lines that keep their line ends, indented."""
    return [".RS", ".PP", ".nf", *(text(line) if line else ".sp" for line in lines), ".fi", ".RE"]
