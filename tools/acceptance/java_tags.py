"""Reads JUnit's ``@Tag("A9")`` from Java sources.

Not a parser of Java: it knows comments, texts, braces, annotations, and what a class or method looks
like, which is what it takes to say which test a tag belongs to. A tag on a class counts for each of its
test methods.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from tools.acceptance.marks import BadMark, Mark, Marks

_TOKEN = re.compile(
    r"""(?P<skipped>//[^\n]*|/\*.*?\*/|\"{3}.*?\"{3}|'(?:\\.|[^'\\])+')
      |(?P<text>"(?:\\.|[^"\\\n])*")
      |(?P<annotation>@(?!interface\b)[A-Za-z_][\w.]*)
      |\b(?:class|record|enum|interface)\s+(?P<type>\w+)
      |(?P<call>\b[A-Za-z_]\w*)(?=\s*\()
      |(?P<mark>[(){};])""",
    re.DOTALL | re.VERBOSE,
)
_OPENS = re.compile(r"\s*\(")
_STATEMENT_TAG = re.compile(r"[A-Z]+[0-9]+")
_OTHER_TAG = re.compile(r"[a-z][a-z-]*")
_TEST = {"Test", "ParameterizedTest", "RepeatedTest", "TestFactory", "TestTemplate", "ClusterTest"}


@dataclass(slots=True)
class _Type:
    """A class whose body is open; ``depth`` is the braces' depth of its members."""

    name: str
    depth: int
    tags: tuple[tuple[str, int], ...]
    has_tests: bool = False


@dataclass(slots=True)
class _Pending:
    """The annotations before a declaration."""

    names: set[str] = field(default_factory=set)
    tags: list[tuple[str, int]] = field(default_factory=list)


def read_java_tags(path: str, source: str) -> Marks:
    """Return the statement tags of one file; tags in lower case are other people's business."""
    return _Reader(path, source).read()


class _Reader:
    def __init__(self, path: str, source: str) -> None:
        self._path, self._source = path, source
        self._tokens = [m for m in _TOKEN.finditer(source) if m.lastgroup != "skipped"]
        self._types: list[_Type] = []
        self._opening: _Type | None = None
        self._pending = _Pending()
        self._depth = 0
        self._good: list[Mark] = []
        self._bad: list[BadMark] = []

    def read(self) -> Marks:
        position = 0
        while position < len(self._tokens):
            token = self._tokens[position]
            if token["annotation"]:
                position = self._annotation(token["annotation"][1:], position)
                continue
            if token["type"]:
                self._opening = _Type(token["type"], self._depth + 1, tuple(self._pending.tags))
                self._pending = _Pending()
            elif token["call"] and self._is_member():
                self._method(token["call"])
            elif token["mark"]:
                self._brace(token["mark"])
            position += 1
        return Marks(tuple(self._good), tuple(self._bad))

    def _is_member(self) -> bool:
        return bool(self._types) and self._depth == self._types[-1].depth and bool(self._pending.names)

    def _annotation(self, name: str, position: int) -> int:
        """Take in an annotation with its arguments; return the position after it."""
        self._pending.names.add(name.rsplit(".", 1)[-1])
        if name.rsplit(".", 1)[-1] == "Tag":
            self._tag(position)
        position += 1
        if not self._follows_parenthesis(position - 1):
            return position
        depth = 0
        while position < len(self._tokens):
            token = self._tokens[position]
            if token["mark"] == "(":
                depth += 1
            elif token["mark"] == ")":
                depth -= 1
            elif token["annotation"] and token["annotation"].rsplit(".", 1)[-1].lstrip("@") == "Tag":
                self._tag(position)
            position += 1
            if depth == 0:
                break
        return position

    def _follows_parenthesis(self, position: int) -> bool:
        return _OPENS.match(self._source, self._tokens[position].end()) is not None

    def _tag(self, position: int) -> None:
        line = self._line(self._tokens[position])
        argument = self._tokens[position + 2] if position + 2 < len(self._tokens) else None
        value = argument["text"][1:-1] if argument is not None and argument["text"] else ""
        if _STATEMENT_TAG.fullmatch(value):
            self._pending.tags.append((value, line))
        elif not _OTHER_TAG.fullmatch(value):
            self._bad.append(BadMark(self._path, line, "the tag is neither a statement's id nor a word"))

    def _method(self, name: str) -> None:
        pending, self._pending = self._pending, _Pending()
        tags = [*(tag for type_ in self._types for tag in type_.tags), *pending.tags]
        if pending.names & _TEST:
            for type_ in self._types:
                type_.has_tests = True
            classes = "::".join(type_.name for type_ in self._types)
            self._good.extend(Mark(self._path, f"{classes}::{name}", id_, line) for id_, line in tags)
        else:
            self._misplaced(pending.tags, f"{name}, which is no test")

    def _brace(self, mark: str) -> None:
        if mark == "{":
            self._depth += 1
            if self._opening is not None:
                self._types.append(self._opening)
                self._opening = None
        elif mark == "}":
            self._depth -= 1
            if self._types and self._depth < self._types[-1].depth:
                closed = self._types.pop()
                if not closed.has_tests:
                    self._misplaced(closed.tags, f"the class {closed.name}, which has no test")
        if mark in "{};" and self._pending.names:
            self._misplaced(self._pending.tags, "something that is no test")
            self._pending = _Pending()

    def _misplaced(self, tags: Iterable[tuple[str, int]], where: str) -> None:
        self._bad.extend(BadMark(self._path, line, f"the tag stands on {where}") for _, line in tags)

    def _line(self, token: re.Match[str]) -> int:
        return self._source.count("\n", 0, token.start()) + 1
