"""Count the words of our former dialect in 10,000 words of our prose, next to other projects' figures."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
_PAGES = ("*.md", "docs/**/*.md", "*/README.md", "roles/*/README.md")
_CODE = ("agent", "spark", "testbed", "bench", "tools", "tests", "extensions", "callback/src")
_VERBS = "is|are|was|were|has|have|had|does|do|can|may|must"
# The pattern, and how often projects of this kind use it in 10,000 words; we aim at twice that at most.
_WORDS = {
    "say, says, said": ("says?|said", 0.8),
    "tell, tells, told": ("tells?|told", 0.1),
    "nobody, somebody, everybody": ("nobody|somebody|everybody", 0.5),
    "anew": ("anew", 0.0),
    "what is, who has, …": (rf"(?:what|who|whoever)\s+(?:{_VERBS})", 5.3),
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


def prose() -> Iterator[str]:
    """Return the text of each page, and the comments and docstrings of the code."""
    for page in sorted({page for pattern in _PAGES for page in REPOSITORY.glob(pattern)}):
        yield _of_page(page.read_text("utf-8"))
    for path in sorted(path for folder in _CODE for path in (REPOSITORY / folder).rglob("*")):
        if path.suffix == ".py":
            yield from _of_python(path.read_text("utf-8"))
        elif path.suffix == ".java":
            yield from re.findall(r"/\*.*?\*/|(?<!:)//[^\n]*", path.read_text("utf-8"), re.DOTALL)


def table(text: str) -> str:
    """Return the counts of these words in this text, with the aims."""
    words = len(re.findall(r"[A-Za-z][A-Za-z'-]*", text))
    lines = [f"{f'in 10,000 of {words:,} words':<32} {'here':>6} {'others':>7} {'aim':>5}"]
    for name, (pattern, others) in _WORDS.items():
        here = len(re.findall(rf"\b(?:{pattern})\b", text, re.IGNORECASE)) * 10_000 / words
        lines.append(f"{name:<32} {here:6.1f} {others:7.1f} {2 * others:5.1f}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table("\n".join(prose())))
