"""docs/failure-modes.md: each fault, what one sees, what kquota does, what to do. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tools.faults.catalogue import Fault
from tools.faults.figures import Seen

_HEAD = """\
# Failure modes

<!-- Written by `make failure-modes` from failure-modes.yml. Do not edit. -->

What can go wrong around a cluster that kquota guards, what one sees of it, and what to do. Each has tests
that inject it; [acceptance.md](acceptance.md) lists them. `make fault F=F13` runs those of one, `make
faults` all, and both print what was expected, what was seen, and how long it took until the state was safe
and until it was normal again.
"""
_SEEN = """
The last two columns are the longest of all tests of a fault in the last `make faults`, on {date} on {cores}
cores, with the settings of the tests: reports every 2 s, stale after 5 to 25 s, leases of 8 to 20 s, about
a third of the defaults. They include what the fault itself takes, such as a session that times out.
"""
_TABLE = """
| | problem | what one sees | what kquota does | what to do | safe after | normal after |
|---|---|---|---|---|---|---|
"""


def render(faults: Sequence[Fault], seen: Seen | None = None) -> str:
    """Return the page."""
    rows = "".join(
        f"| {f.id} | {f.problem} | {f.seen} | {f.does} | {f.act} | {_times(f.id, seen)} |\n" for f in faults
    )
    when = "" if seen is None else _SEEN.format(date=seen.date, cores=seen.cores)
    return _HEAD + when + _TABLE + rows


def _times(id_: str, seen: Seen | None) -> str:
    figures = None if seen is None else seen.figures.get(id_)
    times = (None, None) if figures is None else (figures.safe_seconds, figures.recovery_seconds)
    return " | ".join("-" if seconds is None else f"{seconds:g} s" for seconds in times)
