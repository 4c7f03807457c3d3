"""docs/failure-modes.md: each fault, what one sees, what kquota does, what to do. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tools.faults.catalogue import Fault

_HEAD = """\
# Failure modes

<!-- Written by `make failure-modes` from failure-modes.yml. Do not edit. -->

What can go wrong around a cluster that kquota guards, what one sees of it, and what to do. Each has tests
that inject it; [acceptance.md](acceptance.md) lists them. `make fault F=F13` runs those of one, `make
faults` all, and both print what was expected, what was seen, and how long it took until the state was safe
and until it was normal again.

| | problem | what one sees | what kquota does | what to do |
|---|---|---|---|---|
"""


def render(faults: Sequence[Fault]) -> str:
    """Return the page."""
    return _HEAD + "".join(f"| {f.id} | {f.problem} | {f.seen} | {f.does} | {f.act} |\n" for f in faults)
