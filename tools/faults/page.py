"""docs/failure-modes.md: each fault, its signs, kquota's reaction, the remedy. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tools.faults.catalogue import Fault
from tools.faults.figures import Figures

_HEAD = """\
# Failure modes

<!-- Written by `make failure-modes` from failure-modes.yml. Do not edit. -->

The faults around a cluster that kquota guards, with their signs and remedies. Each has tests
that inject it; [acceptance.md](acceptance.md) lists them. `make fault F=F13` runs those of one, `make
faults` all, and both print the expected and the observed state, and how long it took until the state was safe
and until it was normal again.
"""
_SEEN = """
The last columns show how many tests of a fault passed in their last whole run, and the longest of their times
(runs from {first} to {last}). These are with the settings of the tests: reports every 2 s, stale after 5 to
25 s, leases of 8 to 20 s, about a third of the defaults; on hosts with systemd (F3, F17, F18) with the
defaults. They include what the fault itself takes, such as a session that times out. `-`: nothing changes in
that fault, or its test has no such moment.
"""
_TABLE = """
| | problem | sign | kquota's reaction | remedy | passed | safe after | normal after |
|---|---|---|---|---|---|---|---|
"""


def render(faults: Sequence[Fault], seen: Mapping[str, Figures] | None = None) -> str:
    """Return the page."""
    seen = seen or {}
    rows = "".join(
        f"| {f.id} | {f.problem} | {f.seen} | {f.does} | {f.act} | {_times(f.id, seen)} |\n" for f in faults
    )
    dates = sorted(figures.date for figures in seen.values())
    when = _SEEN.format(first=dates[0], last=dates[-1]) if dates else ""
    return _HEAD + when + _TABLE + rows


def _times(id_: str, seen: Mapping[str, Figures]) -> str:
    figures = seen.get(id_)
    if figures is None:
        return "- | - | -"
    times = (figures.safe_seconds, figures.recovery_seconds)
    return " | ".join([str(figures.tests), *("-" if t is None else f"{t:g} s" for t in times)])
