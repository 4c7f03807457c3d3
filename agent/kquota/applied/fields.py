"""The fields of the applied-state file's JSON, each read as what it must be."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum


class MalformedAppliedState(ValueError):
    """A document that is no applied state; the text names the field."""


class Fields:
    """The fields of one object, each read as what it must be."""

    def __init__(self, document: Mapping[str, object]) -> None:
        self._document = document

    @staticmethod
    def of(value: object, name: str) -> Fields:
        """The fields of a value that must be an object."""
        if not isinstance(value, Mapping):
            raise MalformedAppliedState(f"{name} holds something that is no object")
        return Fields(value)

    def _get(self, name: str) -> object:
        if name not in self._document:
            raise MalformedAppliedState(f"{name} is missing")
        return self._document[name]

    def is_absent(self, name: str) -> bool:
        """Whether the field is not there, as in a file of an older version."""
        return name not in self._document

    def is_null(self, name: str) -> bool:
        """Whether the field is null."""
        return self._get(name) is None

    def text(self, name: str) -> str:
        """A text that is not empty."""
        value = self._get(name)
        if not isinstance(value, str) or not value:
            raise MalformedAppliedState(f"{name} is no text")
        return value

    def integer(self, name: str, minimum: int = 0) -> int:
        """An integer of 64 bits."""
        value = self._get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value < 2**63:
            raise MalformedAppliedState(f"{name} is no integer from {minimum} on")
        return value

    def number(self, name: str) -> float:
        """A finite number of 0 or more."""
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int | Decimal) or not 0 <= value < 2**1000:
            raise MalformedAppliedState(f"{name} is no number from 0 on")
        return float(value)

    def number_or_null(self, name: str) -> float | None:
        """A finite number of 0 or more, or None for a null."""
        return None if self.is_null(name) else self.number(name)

    def any_text(self, name: str) -> str:
        """A text, which may be empty."""
        value = self._get(name)
        if not isinstance(value, str):
            raise MalformedAppliedState(f"{name} is no text")
        return value

    def ratio(self, name: str) -> float:
        """A number from 0 to 1."""
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int | Decimal) or not 0 <= value <= 1:
            raise MalformedAppliedState(f"{name} is no number between 0 and 1")
        return float(value)

    def one_of(self, name: str, choices: type[StrEnum]) -> str:
        """One of the choices."""
        value = self._get(name)
        if value not in list(choices):
            raise MalformedAppliedState(f"{name} is none of {', '.join(choices)}")
        return str(value)

    def entries(self, name: str) -> list[object]:
        """A list."""
        value = self._get(name)
        if not isinstance(value, list):
            raise MalformedAppliedState(f"{name} is no list")
        return value

    def mapping(self, name: str) -> Mapping[str, object]:
        """An object."""
        value = self._get(name)
        if not isinstance(value, Mapping):
            raise MalformedAppliedState(f"{name} is no object")
        return value
