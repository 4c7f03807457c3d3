"""The limits of the locale in which this process runs."""

from __future__ import annotations

import os
import sys

PATH_ALLOWED = "any path in a locale with UTF-8, such as LC_ALL=C.UTF-8"


def path_problem(text: str) -> str | None:
    """Return why a path can't be opened here, or None: it may have letters that the locale can't write."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return f"holds a letter that the locale's encoding ({sys.getfilesystemencoding()}) can't write"
    return None
