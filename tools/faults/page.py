"""docs/failure-modes.md: each fault, what one sees, what kquota does, what to do. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tools.faults.catalogue import Fault
from tools.faults.figures import Figures

_HEAD = """\
# Failure modes

<!-- Written by `make failure-modes` from failure-modes.yml. Do not edit. -->

What can go wrong around a cluster that kquota guards, what one sees of it, and what to do. Each has tests
that inject it; [acceptance.md](acceptance.md) lists them. `make fault F=F13` runs those of one, `make
faults` all, and both print what was expected, what was seen, and how long it took until the state was safe
and until it was normal again.
"""
_SEEN = """
The last columns say how many tests of a fault passed in their last whole run, and the longest of their times
(runs from {first} to {last}). These are with the settings of the tests: reports every 2 s, stale after 5 to
25 s, leases of 8 to 20 s, about a third of the defaults; on hosts with systemd (F3, F17, F18) with the
defaults. They include what the fault itself takes, such as a session that times out. `-`: nothing changes in
that fault, or what is tested has no such moment.
"""
_TABLE = """
| | problem | what one sees | what kquota does | what to do | passed | safe after | normal after |
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
