"""Sphinx's configuration. Nothing of the site is loaded from elsewhere: theme, search and fonts are local."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_REPOSITORY = Path(__file__).resolve().parents[2]
_PAGE = re.compile(r"\[([^\]]+)\]\(([^)\s#]+\.md)\)")
# Pages that `make evidence` makes from the tests, and that the repository does not keep.
_MADE = {
    "Evidence": [
        ("Statements", "docs/evidence/acceptance.md"),
        ("Tests of statements", "docs/evidence/acceptance-tests.md"),
        ("Failure modes", "docs/evidence/failure-modes.md"),
        ("Attacks", "docs/evidence/attacks.md"),
    ]
}


def _navigation(index: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the headings of the index, and below each the pages that it links to, with their titles."""
    parts = re.split(r"(?m)^## (.+)$", index.read_text("utf-8"))
    return {
        heading: [
            (
                title if title.startswith("kquota") else title[0].upper() + title[1:],
                str((index.parent / page).resolve().relative_to(_REPOSITORY)),
            )
            for title, page in _PAGE.findall(text)
        ]
        + _MADE.get(heading, [])
        for heading, text in zip(parts[1::2], parts[2::2], strict=True)
    }


_NAVIGATION = _navigation(_REPOSITORY / "docs/index.md")

project = "kquota"
author = copyright = "The kquota authors"
(version,) = re.findall(
    r'__version__ = "(.+)"', (_REPOSITORY / "agent/kquota/__init__.py").read_text("utf-8")
)
release = version
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
language = "en"
# A page in docs/ that the index does not lead to is a warning, and so an error.
include_patterns = ["docs/**.md", *(page for part in _NAVIGATION.values() for _, page in part)]
exclude_patterns = [".*", "build", "dist", "callback/target"]

# The text stays as it is written: quotes belong to commands.
smartquotes = False

html_theme = "furo"
html_title = f"kquota {release}"
html_static_path = ["static"]
html_css_files = ["kquota.css"]
html_copy_source = False
html_show_sphinx = False
html_last_updated_fmt = None

# Links as GitHub makes them: any heading, at any depth, by its words.
myst_heading_anchors = 6
myst_enable_extensions = ["strikethrough"]
suppress_warnings = [
    # Plain text in fences that name no language known here; the text is shown as it is.
    "misc.highlighting_failure",
    # The decision records begin with a title and a line of their own below it.
    "myst.header",
]
_LINK = re.compile(r"(?<![\\!])\[([^\]]*)\]\((?![a-z]+:)([^)\s#]+)\)")


def _prepare(_sphinx: Any, name: str, source: list[str]) -> None:
    """Add the navigation to the home page, and leave of a link to a folder its text."""
    folder = (_REPOSITORY / name).parent
    source[0] = _LINK.sub(lambda link: link[1] if (folder / link[2]).is_dir() else link[0], source[0])
    if name.startswith("docs/adr/0"):  # found by their index, not by the navigation
        source[0] = f"---\norphan: true\n---\n{source[0]}"
    if name == root_doc:
        for heading, part in _NAVIGATION.items():
            pages = "\n".join(f"{title} </{page}>" for title, page in part)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n:maxdepth: 1\n\n{pages}\n```\n"


def setup(sphinx: Any) -> None:
    """Have Sphinx prepare each page."""
    sphinx.connect("source-read", _prepare)
