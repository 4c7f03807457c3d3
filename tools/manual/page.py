"""A page of reference in Markdown as a manual page in man(7)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import kquota
from tools.manual import roff

_LINK = re.compile(r"\[([^\]]*)\]\([^)\s]*\)")
_FENCE = "```"
_MARKS = {"`": "", "&lt;": "<", "\\*": "*", "\\|": "|", "../packaging/": ""}


class UnknownMarkdown(ValueError):
    """The page has a form that this module can't put into a manual page; the text is its line."""


def manual_page(
    page: str, name: str, section: int, *, summary: str, date: str, files: Mapping[str, str], see_also: str
) -> str:
    """Return a page of reference as man(7) text.

    Headings of the second level become sections, those of the third items, and so do the rows of tables.
    ``date`` is an ISO date, ``files`` the meaning of each file by its path.

    Raises:
        UnknownMarkdown: the page is written in a form that is not known here.
    """
    lines = [
        *roff.title(name, section, kquota.__version__, date),
        roff.heading("Name"),
        f"{name} \\- {roff.text(summary)}",
        roff.heading("Description"),
        *_body(page),
    ]
    if files:
        lines += [roff.heading("Files"), *(line for file in files.items() for line in roff.item(*file))]
    return "\n".join([*lines, roff.heading("See also"), roff.text(see_also)]) + "\n"


def _body(page: str) -> Iterator[str]:
    blocks = [block for block in re.split(r"\n\s*\n", page.strip()) if not block.startswith(("# ", "<!--"))]
    fresh, inside_item = True, False  # after a heading or an item, where no paragraph macro may follow
    for block in blocks:
        if block.startswith("### "):
            yield from roff.item(plain(block[4:]))
            fresh, inside_item = True, True
        elif block.startswith("## "):
            yield roff.heading(plain(block[3:]))
            fresh, inside_item = True, False
        else:
            yield from paragraph(block.splitlines(), fresh=fresh, macro=".IP" if inside_item else ".PP")
            fresh = False


def paragraph(lines: list[str], *, fresh: bool, macro: str) -> Iterator[str]:
    """Yield a block of a page; ``fresh`` if it is the first after a heading or an item.

    Raises:
        UnknownMarkdown: it is written in a form that is not known here.
    """
    first = lines[0]
    if first.startswith(_FENCE):
        if lines[-1] != _FENCE or len(lines) < 3:
            raise UnknownMarkdown(first)
        yield from roff.sample(lines[1:-1])
        return
    if first.startswith("|"):
        for line in lines[2:]:
            name, meaning = (plain(cell) for cell in line.strip("| ").split(" | ", 1))
            yield from roff.item(name, meaning)
        return
    if not fresh:
        yield macro
    if first.startswith("- "):
        for number, line in enumerate(lines):
            if not line.startswith("- "):
                raise UnknownMarkdown(line)
            yield from [".br"] * bool(number)
            yield roff.text(plain(line[2:]))
    else:
        yield roff.text(plain(" ".join(lines)))


def plain(markdown: str) -> str:
    """Return the text of a line without its marks."""
    text = _LINK.sub(r"\1", markdown)
    for mark, meaning in _MARKS.items():
        text = text.replace(mark, meaning)
    return text
