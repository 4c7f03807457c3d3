"""Copies what the site is made from, as it lies in the repository, and adds the navigation."""

from __future__ import annotations

import re
import shutil
from functools import partial
from pathlib import Path

import yaml

LINK = re.compile(r"(?<!\\)(!?\[[^\]]*\])\(([^)\s]+)\)")
_ELSEWHERE = re.compile(r"[a-z]+:|#")
HOME = "docs/index.md"


class NotInTheNavigation(LookupError):
    """A page of docs/ without a way to it; the text names it."""


def sections(navigation: Path) -> dict[str, dict[str, str | None]]:
    """Return the navigation: headings, and below each the pages with a title where it is not their own.

    Pages are paths in the repository.
    """
    found: dict[str, dict[str, str | None]] = {}
    for heading, entries in yaml.safe_load(navigation.read_text("utf-8")).items():
        found[heading] = {}
        for entry in entries:
            titled = entry if isinstance(entry, dict) else {None: entry}
            found[heading] |= {page: title for title, page in titled.items()}
    return found


def stage(repository: Path, target: Path, navigation: Path) -> list[Path]:
    """Copy every page of the navigation, and every file that a page links to, below ``target``.

    Returns:
        The pages, relative to ``target``.

    Raises:
        NotInTheNavigation: a page in docs/ is not in the navigation.
    """
    named = [Path(page) for pages in sections(navigation).values() for page in pages]
    pages = [Path(HOME), *named, *_linked_decisions(repository)]
    missing = {page.relative_to(repository) for page in (repository / "docs").rglob("*.md")} - set(pages)
    if missing:
        raise NotInTheNavigation(f"{navigation}: {', '.join(sorted(map(str, missing)))} is not in it")
    for page in pages:
        text = (repository / page).read_text("utf-8")
        text = LINK.sub(partial(_link, repository=repository, target=target, page=page, pages=pages), text)
        if page == Path(HOME):
            text += _tables_of_contents(sections(navigation), page)
        (target / page).parent.mkdir(parents=True, exist_ok=True)
        (target / page).write_text(text, "utf-8")
    return pages


def _linked_decisions(repository: Path) -> list[Path]:
    """The decision records are found by their index."""
    return sorted(path.relative_to(repository) for path in (repository / "docs/adr").glob("[0-9]*.md"))


def _link(match: re.Match[str], repository: Path, target: Path, page: Path, pages: list[Path]) -> str:
    """Keep a link; copy the file that it leads to; of a link to a folder keep the text."""
    text, address = match[1], match[2]
    if _ELSEWHERE.match(address):
        return match[0]
    linked = (repository / page.parent / address.partition("#")[0]).resolve()
    if linked.is_dir():
        return text[1:-1]
    relative = linked.relative_to(repository.resolve())
    if relative not in pages:
        (target / relative).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(linked, target / relative)
    return match[0]


def _tables_of_contents(navigation: dict[str, dict[str, str | None]], home: Path) -> str:
    parts = [
        "\n".join(
            [
                "",
                "```{toctree}",
                ":hidden:",
                f":caption: {heading}",
                ":maxdepth: 1",
                "",
                *(_named(_from(home, Path(page)), title) for page, title in pages.items()),
                "```",
                "",
            ]
        )
        for heading, pages in navigation.items()
    ]
    return "\n".join(parts)


def _named(name: str, title: str | None) -> str:
    return name if title is None else f"{title} <{name}>"


def _from(home: Path, page: Path) -> str:
    """Return a page's name as a table of contents on the home page has it."""
    name = page.with_suffix("").as_posix()
    folder = f"{home.parent.as_posix()}/"
    return name.removeprefix(folder) if name.startswith(folder) else f"/{name}"
