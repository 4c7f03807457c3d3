"""One way to state claims about figures."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar

Measured = TypeVar("Measured")
Comparison = Literal["<", "<=", "==", ">="]
_COMPARISONS: dict[Comparison, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claim:
    """A figure against its bound. Where an asserted one is broken the run fails; others are aims."""

    name: str
    figure: float
    comparison: Comparison
    bound: float
    measured: str
    """The figure for people, with its context."""
    cause: str = ""
    """The probable reason why an aim is missed."""
    idea: str = ""
    """A way to come nearer to it."""
    asserted: bool = False

    @property
    def holds(self) -> bool:
        """Whether the figure compares to the bound as claimed."""
        return _COMPARISONS[self.comparison](self.figure, self.bound)

    @property
    def outcome(self) -> str:
        """One word for people."""
        if self.asserted:
            return "holds" if self.holds else "BROKEN"
        return "met" if self.holds else "missed"


def each(
    name: str,
    cases: Iterable[Measured],
    figure: Callable[[Measured], float | None],
    bound: Callable[[Measured], float] | float,
    unit: str,
    where: Callable[[Measured], str],
    cause: str = "",
    idea: str = "",
    digits: int = 1,
) -> Iterator[Claim]:
    """Yield an aim that each case has to meet; a figure is None if the event of the aim did not happen."""
    measured = [(figure(case), bound(case) if callable(bound) else bound, case) for case in cases]
    if not measured:
        return
    ratios = [math.inf if value is None else value / limit for value, limit, _ in measured]
    value, limit, case = measured[ratios.index(max(ratios))]
    worst = "not while the bench watched" if value is None else f"{value:.{digits}f} {unit}"
    met = sum(ratio <= 1 for ratio in ratios)
    measured_text = f"{met} of {len(ratios)}; worst {worst}, the aim is {limit:.{digits}f} ({where(case)})"
    yield Claim(name, max(ratios), "<=", 1, measured_text, cause=cause, idea=idea)
