"""One statement and what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from bench.results import Paused, Throttled

_Measured = TypeVar("_Measured", Paused, Throttled)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One statement and what was measured. `asserted`: `make bench` fails where it does not hold."""

    statement: str
    measured: str
    holds: bool
    asserted: bool
    cause: str = ""
    """Why an aim is missed, as far as it is understood."""
    idea: str = ""
    """What could come nearer to it."""


def aim(
    statement: str,
    cases: Iterable[_Measured],
    figure: Callable[[_Measured], float | None],
    bound: Callable[[_Measured], float],
    unit: str,
    cause: str,
    idea: str,
) -> Iterator[Verdict]:
    """An aim that each case has to meet; a figure is None where what is aimed at did not happen."""
    measured = [(figure(case), bound(case), case) for case in cases]
    if not measured:
        return
    met = sum(value is not None and value <= limit for value, limit, _ in measured)
    value, limit, case = max(
        measured, key=lambda entry: float("inf") if entry[0] is None else entry[0] / entry[1]
    )
    worst = "not in the time watched" if value is None else f"{value:.1f} {unit}"
    yield Verdict(
        statement,
        f"{met} of {len(measured)}; worst {worst} where {limit:.1f} was aimed at ({where(case)})",
        met == len(measured),
        asserted=False,
        cause=cause,
        idea=idea,
    )


def where(measured: Paused | Throttled) -> str:
    """The case and what was done to it."""
    if isinstance(measured, Throttled):
        return f"{measured.case}, {measured.step}"
    return f"{measured.case}, {measured.seconds:g} s"


def megabytes(count: float) -> str:
    """For people: 10^6 bytes, never 0 for what is not nothing."""
    return f"{count / 1e6:.1f} MB" if count >= 100_000 or count == 0 else f"{count / 1e3:.0f} kB"
