"""When and with which versions each row of the page was measured. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bench.harness.results import Saved


def rows(kind: str, saved: Sequence[Saved]) -> list[tuple[object, str]]:
    """Return the figures of a kind, by its name, each with its origin."""
    return [
        (figure, origin(entry, saved))
        for entry in saved
        for figure in entry.figures
        if type(figure).__name__ == kind
    ]


def origin(entry: Saved, saved: Sequence[Saved]) -> str:
    """Return the day of a measurement, and of its machine and versions those that not all have."""
    every = [set(other.machine.split(", ")) for other in saved]
    common = set.intersection(*every)
    return ", ".join(
        [entry.measured_at[:10], *(part for part in entry.machine.split(", ") if part not in common)]
    )
