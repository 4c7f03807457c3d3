"""The statements of ``docs/acceptance.yml``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

_ID = re.compile(r"[A-Z][1-9][0-9]*")


class InvalidStatements(ValueError):
    """The file of statements is not as it has to be; the text names the place."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that kquota does; ``decided`` is our reading where the source leaves it open.

    ``real_parts`` are the paths of the tests that can prove it; empty where any test can.
    """

    id: str
    text: str
    source: str
    decided: str | None = None
    real_parts: tuple[str, ...] = ()

    def is_proven_by(self, path: str) -> bool:
        """Return whether a test in this file proves the statement, and not only a part of it."""
        return not self.real_parts or path.startswith(self.real_parts)


@dataclass(frozen=True, slots=True)
class Section:
    """Statements of one subject."""

    title: str
    statements: tuple[Statement, ...]


def read_sections(path: Path) -> tuple[Section, ...]:
    """Return the sections in the file's order.

    Raises:
        InvalidStatements: an unknown key, a missing text, an id twice or of another form than A1.
        OSError: the file can't be read.
    """
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except yaml.YAMLError as error:
        raise InvalidStatements(f"{path.name}: no YAML: {error}") from None
    top = _mapping(document, path.name, allowed={"sources", "real_parts", "sections"})
    sources = _mapping(top.get("sources"), "sources")
    real_parts = top.get("real_parts", [])
    if not isinstance(real_parts, list) or not all(isinstance(path, str) for path in real_parts):
        raise InvalidStatements("real_parts: must be a list of paths")
    sections = top.get("sections")
    if not isinstance(sections, list):
        raise InvalidStatements("sections: must be a list")
    found = tuple(
        _section(entry, f"sections[{i}]", sources, tuple(real_parts)) for i, entry in enumerate(sections)
    )
    ids = [statement.id for section in found for statement in section.statements]
    if twice := sorted({id_ for id_ in ids if ids.count(id_) > 1}):
        raise InvalidStatements(f"{', '.join(twice)}: stated twice")
    return found


def all_statements(sections: tuple[Section, ...]) -> Iterator[Statement]:
    """Yield the statements of every section."""
    for section in sections:
        yield from section.statements


def _section(
    entry: object, where: str, sources: Mapping[str, object], real_parts: tuple[str, ...]
) -> Section:
    section = _mapping(entry, where, allowed={"title", "source", "on_real_parts", "statements"})
    default_source = _text(section, "source", where)
    statements = _mapping(section.get("statements"), f"{where}.statements")
    on_real_parts = section.get("on_real_parts", False)
    if not isinstance(on_real_parts, bool) or (on_real_parts and not real_parts):
        raise InvalidStatements(f"{where}.on_real_parts: must be true, with real_parts listed, or false")
    wanted = real_parts if on_real_parts else ()
    return Section(
        _text(section, "title", where),
        tuple(_statement(id_, entry, default_source, sources, wanted) for id_, entry in statements.items()),
    )


def _statement(
    id_: str,
    entry: object,
    default_source: str,
    sources: Mapping[str, object],
    real_parts: tuple[str, ...],
) -> Statement:
    if not _ID.fullmatch(id_):
        raise InvalidStatements(f"{id_}: an id is a capital letter and a number, such as A1")
    fields = _mapping(entry, id_, allowed={"statement", "source", "decided"})
    source = _text(fields, "source", id_) if "source" in fields else default_source
    if source not in sources:
        raise InvalidStatements(f"{id_}: source {source!r} is none of {', '.join(sources)}")
    return Statement(
        id=id_,
        text=_text(fields, "statement", id_),
        source=_text(sources, source, "sources"),
        decided=_text(fields, "decided", id_) if "decided" in fields else None,
        real_parts=real_parts,
    )


def _mapping(value: object, where: str, allowed: set[str] | None = None) -> Mapping[str, object]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InvalidStatements(f"{where}: must be a mapping")
    if allowed is not None and (unknown := sorted(value.keys() - allowed)):
        raise InvalidStatements(
            f"{where}: {', '.join(unknown)} is no known key; allowed are {', '.join(sorted(allowed))}"
        )
    return value


def _text(fields: Mapping[str, object], key: str, where: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not value.strip() or "\n" in value or "|" in value:
        raise InvalidStatements(f"{where}.{key}: must be a line of text without a vertical bar")
    return value
