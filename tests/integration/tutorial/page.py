"""The tutorial as steps: the typed commands, and the output on the page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/tutorial.md"
_FENCE = re.compile(r"^```(sh|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"[A-Za-z]{3,}")


@dataclass(slots=True)
class Step:
    """Commands as they are on the page, and their output there, if any."""

    commands: str
    output: str | None = None


def steps(text: str) -> list[Step]:
    """Return the commands of the page, in order; a text block belongs to the commands before it."""
    found: list[Step] = []
    for kind, body in _FENCE.findall(text):
        if kind == "sh":
            found.append(Step(body))
        else:
            assert found, "output before any command"
            assert found[-1].output is None, f"two outputs of {found[-1].commands}"
            found[-1].output = body
    return found


def words_missing(shown: str, real: str) -> list[str]:
    """Return the words of the page that the real output does not have, in this order; figures may differ."""
    real_words = iter(_WORD.findall(real))
    return [word for word in _WORD.findall(shown) if word not in real_words]
