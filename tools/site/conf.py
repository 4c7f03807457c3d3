"""Sphinx's configuration. Nothing of the site is loaded from elsewhere: theme, search and fonts are local."""

from __future__ import annotations

import re
from pathlib import Path

_VERSION = Path(__file__).resolve().parents[2] / "agent/kquota/__init__.py"

project = "kquota"
author = copyright = "The kquota authors"
(version,) = re.findall(r'__version__ = "(.+)"', _VERSION.read_text("utf-8"))
release = version
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
language = "en"

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
    # They are found by their index, not by the navigation.
    "toc.not_included",
]
