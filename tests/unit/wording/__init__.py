"""The golden files of sentences that people read: one for each surface, for reviewers to read as a whole.

Tests elsewhere assert causes, keys and values.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def wording(surface: str) -> dict[str, Any]:
    """Return the sentences of a surface, by the name of what they are about."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name(f"{surface}.json").read_text("utf-8"))
    assert found, surface
    return found
