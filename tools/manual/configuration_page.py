"""kquota-agent.yml(5): every key, as docs/configuration.md explains it from the commented example."""

from __future__ import annotations

import re
from collections.abc import Iterator

import kquota
from tools.configuration.page import render_page
from tools.manual import roff

_SUMMARY = "kquota-agent.yml \\- configuration of the kquota agent"
_LINK = re.compile(r"\[([^\]]*)\]\([^)\s]*\)")
_FENCE = "```"


class UnknownMarkdown(ValueError):
    """The page of keys has a form that this module can't put into a manual page; the text is its line."""


def render_configuration_page(example_text: str, date: str) -> str:
    """Return kquota-agent.yml(5) as man(7) text; ``date`` is an ISO date.

    Raises:
        UnexplainedKey: the example says nothing about a key.
        UnknownMarkdown: the page of keys is written in a form that is not known here.
    """
    lines = [
        *roff.title("kquota-agent.yml", 5, kquota.__version__, date),
        roff.heading("Name"),
        _SUMMARY,
        roff.heading("Description"),
        *_body(render_page(example_text)),
        roff.heading("See also"),
        "\\fBkquota\\fP(1), \\fBsystemd.exec\\fP(5)",
    ]
    return "\n".join(lines) + "\n"


def _body(page: str) -> Iterator[str]:
    blocks = [block for block in re.split(r"\n\s*\n", page.strip()) if not block.startswith(("# ", "<!--"))]
    fresh, inside_item = True, False  # after a heading or an item, where no paragraph macro may follow
    for block in blocks:
        if block.startswith("### "):
            yield from roff.item(_plain(block[4:]), [])
            fresh, inside_item = True, True
        elif block.startswith("## "):
            yield roff.heading(_plain(block[3:]))
            fresh, inside_item = True, False
        else:
            yield from _paragraph(block.splitlines(), fresh=fresh, macro=".IP" if inside_item else ".PP")
            fresh = False


def _paragraph(lines: list[str], *, fresh: bool, macro: str) -> Iterator[str]:
    first = lines[0]
    if first.startswith(_FENCE):
        if lines[-1] != _FENCE or len(lines) < 3:
            raise UnknownMarkdown(first)
        yield from roff.sample(lines[1:-1])
        return
    if first.startswith("|"):
        for line in lines[2:]:
            names, reason = (_plain(cell) for cell in line.strip("| ").split(" | ", 1))
            yield from roff.item(names, [reason])
        return
    if not fresh:
        yield macro
    if first.startswith("- "):
        for number, line in enumerate(lines):
            if not line.startswith("- "):
                raise UnknownMarkdown(line)
            yield from [".br"] * bool(number)
            yield roff.text(_plain(line[2:]))
    else:
        yield roff.text(_plain(" ".join(lines)))


def _plain(markdown: str) -> str:
    return _LINK.sub(r"\1", markdown).replace("`", "").replace("&lt;", "<").replace("../packaging/", "")
