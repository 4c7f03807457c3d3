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


def subheading(words: str) -> str:
    """Return the heading of a part of a section."""
    return f'.SS "{text(words)}"'


def paragraphs(blocks: Iterable[str], macro: str = ".PP") -> list[str]:
    """Return paragraphs, all but the first after ``macro`` (which a heading or an item stands for)."""
    lines: list[str] = []
    for block in blocks:
        lines += [macro] * bool(lines) + [text(block)]
    return lines


def item(tag: str, blocks: Iterable[str]) -> list[str]:
    """Return a bold tag with indented paragraphs below it."""
    return [".TP", f"\\fB{text(tag)}\\fP", *paragraphs(blocks, ".IP")]


def sample(lines: Iterable[str]) -> list[str]:
    """Return lines that keep their line ends, indented."""
    return [".RS", ".PP", ".nf", *(text(line) if line else ".sp" for line in lines), ".fi", ".RE"]
