"""The statements of ``docs/acceptance.yml``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

Line = Annotated[str, StringConstraints(pattern=r"^[^|\n]*[^|\s][^|\n]*$")]
"""A line of text that fits into a table."""
_Id = Annotated[str, StringConstraints(pattern=r"^[A-Z][1-9][0-9]*$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Statement(_Strict):
    """One thing that kquota does; ``decided`` is our reading where the source leaves it open."""

    statement: Line
    source: str | None = None
    decided: Line | None = None


class Section(_Strict):
    """Statements of one subject, by id; those ``on_real_parts`` are proven only by tests on these."""

    title: Line
    source: str
    on_real_parts: bool = False
    statements: dict[_Id, Statement]


class Statements(_Strict):
    """The whole file; ``real_parts`` are paths of tests."""

    sources: dict[str, Line]
    real_parts: tuple[str, ...] = ()
    sections: tuple[Section, ...]

    @model_validator(mode="after")
    def _is_whole(self) -> Statements:
        counted = Counter(id_ for section in self.sections for id_ in section.statements)
        if twice := [id_ for id_, times in counted.items() if times > 1]:
            raise ValueError(f"{', '.join(twice)}: stated twice")
        named = {section.source for section in self.sections}
        named |= {one.source for one in self.by_id.values() if one.source is not None}
        if unknown := named - set(self.sources):
            raise ValueError(f"source {', '.join(unknown)}: is none of {', '.join(self.sources)}")
        if not self.real_parts and any(section.on_real_parts for section in self.sections):
            raise ValueError("on_real_parts: there are no real_parts")
        return self

    @property
    def by_id(self) -> dict[str, Statement]:
        """All of them, in the file's order."""
        return {id_: text for section in self.sections for id_, text in section.statements.items()}


def read_statements(path: Path) -> Statements:
    """Return those of a file.

    Raises:
        ValueError: it is not as it has to be; the text names the place.
        OSError: it can't be read.
    """
    try:
        return Statements.model_validate(yaml.safe_load(path.read_text("utf-8")))
    except yaml.YAMLError as error:
        raise ValueError(f"{path.name}: no YAML: {error}") from None
