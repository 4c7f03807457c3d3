"""Sphinx's configuration. Nothing of the site is loaded from elsewhere: theme, search and fonts are local."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

_REPOSITORY = Path(__file__).resolve().parents[2]
_NAVIGATION = yaml.safe_load(Path(__file__).with_name("navigation.yml").read_text("utf-8"))


def _entry(entry: str | dict[str, str]) -> tuple[str, str]:
    """Return a page of the navigation, and its title there if that is not the page's own."""
    return (entry, "") if isinstance(entry, str) else next((page, title) for title, page in entry.items())


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
# A page in docs/ that the navigation does not lead to is a warning, and so an error.
include_patterns = ["docs/**.md", *(page for part in _NAVIGATION.values() for page, _ in map(_entry, part))]
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
            pages = "\n".join(
                f"{title} </{page}>" if title else f"/{page}" for page, title in map(_entry, part)
            )
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n:maxdepth: 1\n\n{pages}\n```\n"


def setup(sphinx: Any) -> None:
    """Have Sphinx prepare each page."""
    sphinx.connect("source-read", _prepare)
