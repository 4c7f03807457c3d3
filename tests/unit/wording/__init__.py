"""The golden files of sentences that people read: one for each surface, for reviewers to read as a whole.

Tests state the name of a sentence and the values in it: a cause, keys, figures. `refusals` has whole texts,
by the names of samples.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

SURFACES = ("decisions", "records", "journal")


@cache
def wording(surface: str) -> dict[str, Any]:
    """Return the sentences of a surface, by their names."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name(f"{surface}.json").read_text("utf-8"))
    assert found, surface
    return found


@cache
def sentences() -> dict[str, str]:
    """Return the sentences of all surfaces by name, with fields for the values in them."""
    found = [item for surface in SURFACES for item in wording(surface).items()]
    assert len(dict(found)) == len(found)
    return dict(found)


def say(name: str, **values: object) -> str:
    """Return a sentence with these values, which have to be all of its fields."""
    sentence = sentences()[name]
    fields = {field for _, field, _, _ in Formatter().parse(sentence) if field is not None}
    assert fields == values.keys(), (name, fields)
    return sentence.format(**values)
