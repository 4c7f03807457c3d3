"""How a document becomes a record's value."""

from __future__ import annotations

import json
from collections.abc import Mapping


def to_json(document: Mapping[str, object]) -> bytes:
    """Return a document as compact UTF-8 JSON."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
