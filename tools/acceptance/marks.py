"""A mark on a test: the statement that it says to prove."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """``path`` is relative to the repository; ``test`` is the test's name, ``line`` the mark's."""

    path: str
    test: str
    statement_id: str
    line: int


@dataclass(frozen=True, slots=True)
class BadMark:
    """A mark that can't be read, or stands where no test is."""

    path: str
    line: int
    problem: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Marks:
    """What was found in the tests."""

    good: tuple[Mark, ...] = ()
    bad: tuple[BadMark, ...] = ()

    def __add__(self, other: Marks) -> Marks:
        return Marks(self.good + other.good, self.bad + other.bad)
