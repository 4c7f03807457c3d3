"""The commented example file, as sections of explained keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_HEADING = re.compile(r"# --- (.+?) -+$")
_KEY = re.compile(r"( *)([A-Za-z_][\w.]*):")


@dataclass(slots=True)
class Explanation:
    """The comments about a key: paragraphs of prose, and lines of YAML that are an example.

    ``section`` is the heading that the key stands under.
    """

    key: str
    section: str
    prose: list[str] = field(default_factory=list)
    sample: list[str] = field(default_factory=list)


def read_example(text: str) -> tuple[list[str], dict[str, Explanation]]:
    """Return the paragraphs at the head of the file, and the explanation of each key by its dotted name.

    A comment belongs to the key after it, at whatever depth. In a comment, lines indented by more than one
    blank are a sample. The lines below a key whose value the operator makes up (``kafka``) are its sample.
    """
    head, body = _split(text)
    explanations: dict[str, Explanation] = {}
    section, comment = "", list[str]()
    parents: list[tuple[int, str]] = []
    for line in body:
        if heading := _HEADING.fullmatch(line):
            section, comment = heading[1], []
        elif line.lstrip().startswith("#"):
            comment.append(line.lstrip()[1:])
        elif match := _KEY.match(line):
            depth, name = len(match[1]), match[2]
            parents = [parent for parent in parents if parent[0] < depth]
            key = ".".join([*(parent for _, parent in parents), name])
            explanations[key] = _explanation(key, section, comment)
            parents.append((depth, name))
            comment = []
            _add_to_ancestors(explanations, key, line, depth)
        elif not line.strip():
            comment = []
    return list(_paragraphs(head)), explanations


def _split(text: str) -> tuple[list[str], list[str]]:
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if _HEADING.fullmatch(line))
    # the title and the blank line after it are the page's own
    return [line.removeprefix("#") for line in lines[2:first]], lines[first:]


def _add_to_ancestors(explanations: dict[str, Explanation], key: str, line: str, depth: int) -> None:
    """Keep the line as a sample of the top-level key that it stands under."""
    top = key.split(".", 1)[0]
    if depth and top in explanations:
        explanations[top].sample.append(line[2:])


def _explanation(key: str, section: str, comment: list[str]) -> Explanation:
    sample = [line.removeprefix("   ") for line in comment if line.startswith("   ")]
    prose = [line for line in comment if not line.startswith("   ")]
    return Explanation(key, section, list(_paragraphs(prose)), sample)


def _paragraphs(lines: list[str]) -> Iterator[str]:
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line.strip())
        elif paragraph:
            yield " ".join(paragraph)
            paragraph = []
