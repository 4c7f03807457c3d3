"""The problems of a configuration, in sentences an operator can act on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Never

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

REDACTED = "[redacted]"
_MAX_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Allowed:
    """Mark of a field: in words, which values it takes."""

    text: str


@dataclass(frozen=True, slots=True)
class Value(Allowed):
    """Mark of a field whose value ``read`` makes of what YAML, JSON or a variable gives.

    ``read`` raises ValueError for a value that is not allowed; ``shown`` gives its form in JSON.
    """

    read: Callable[[Any], object]
    shown: Callable[[Any], object] | None = None

    def __get_pydantic_core_schema__(self, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return a schema of ``read`` and ``shown`` alone, whatever the field's type."""
        form = self.shown and core_schema.plain_serializer_function_ser_schema(self.shown)
        return core_schema.no_info_plain_validator_function(self.read, serialization=form)


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: where, which key (dotted path), what about it, and what is allowed there.

    ``value`` is the refused value as shown to people, redacted where it is secret, or None where there
    is none to show (a missing or unknown key).
    """

    source: str
    key: str
    value: str | None
    wrong: str
    allowed: str

    def __str__(self) -> str:
        subject = f"{self.source}: {self.key}" if self.key else f"{self.source}:"
        return f"{subject} {self.wrong}; allowed: {self.allowed}"


class SettingsError(Exception):
    """A configuration that can't be used; ``problems`` holds everything that is wrong with it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @staticmethod
    def of(source: object, wrong: str, allowed: str, key: str = "") -> SettingsError:
        """Return the error of one problem; without a key it is about the whole source."""
        return SettingsError([Problem(str(source), key, None, wrong, allowed)])


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check of several keys: a key below the checked place, and its problem."""

    key: tuple[str, ...]
    wrong: str
    allowed: str
    value: str | None = None

    @staticmethod
    def of_value(key: Sequence[str], value: object, allowed: str) -> Finding:
        """Return the finding that ``key`` has a value that is not allowed."""
        shown = show(value)
        return Finding(tuple(key), f"is {shown}", allowed, shown)


_FINDINGS = "kquota_findings"


def refuse(findings: Iterable[Finding]) -> Never:
    """Refuse a value from within a validator, for all these reasons at once."""
    raise PydanticCustomError(_FINDINGS, "refused", {"findings": list(findings)})


def findings_of(error: Mapping[str, Any]) -> list[Finding]:
    """Return what :func:`refuse` was given, from one entry of a ValidationError; else nothing."""
    return list(error["ctx"]["findings"]) if error["type"] == _FINDINGS else []


def show(value: object) -> str:
    """Return a value as a sentence quotes it: text in quotes, everything else as YAML writes it."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    shown = repr(value) if isinstance(value, str) else str(value)
    return shown if len(shown) <= _MAX_SHOWN else shown[:_MAX_SHOWN] + "…"
