"""How often our prose uses the words of our former dialect, in 10,000 words, next to the figures of other projects."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "*/README.md", "roles/*/README.md")
_CODE = ("agent", "spark", "testbed", "bench", "tools", "tests", "extensions", "callback/src")
# The pattern, and how often projects of this kind use it in 10,000 words; we aim at twice that at most.
_WORDS = {
    "say, says, said": (r"says?|said", 0.8),
    "tell, tells, told": (r"tells?|told", 0.1),
    "nobody, somebody, everybody": (r"nobody|somebody|everybody", 0.5),
    "anew": (r"anew", 0.0),
    "what is, who has, …": (r"(?:what|who|whoever)\s+(?:is|are|was|were|has|have|had|does|do|can|may|must)", 5.3),
}


def _of_page(text: str) -> str:
    return re.sub(r"^```.*?^```|`[^`\n]*`", " ", text, flags=re.DOTALL | re.MULTILINE)


def _of_python(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def _of_java(text: str) -> str:
    return " ".join(re.findall(r"/\*.*?\*/|(?<!:)//[^\n]*", text, re.DOTALL))


def prose() -> Iterator[str]:
    """Return the text of each page, and the comments and docstrings of each module and class."""
    for pattern in _PAGES:
        yield from (_of_page(page.read_text("utf-8")) for page in sorted(REPOSITORY.glob(pattern)))
    for folder in _CODE:
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            yield from _of_python(path.read_text("utf-8"))
        yield from (_of_java(path.read_text("utf-8")) for path in sorted((REPOSITORY / folder).rglob("*.java")))


def table(text: str) -> str:
    """Return the counts of these words in this text, with the aims."""
    words = len(re.findall(r"[A-Za-z][A-Za-z'-]*", text))
    lines = [f"{'in 10,000 of ' + format(words, ',') + ' words':<32} {'here':>6} {'others':>7} {'aim':>5}"]
    for name, (pattern, others) in _WORDS.items():
        here = len(re.findall(rf"\b(?:{pattern})\b", text, re.IGNORECASE)) * 10_000 / words
        above = "  above" if here > 2 * others else ""
        lines.append(f"{name:<32} {here:6.1f} {others:7.1f} {2 * others:5.1f}{above}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table("\n".join(prose())))
