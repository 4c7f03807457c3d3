"""The page of the results: a table for each fill, and remarks of a system's authors. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bench.harness.results import Saved, of
from conformance.figures import COLUMNS, MIB, Fill, Recovery, Survival, behind
from conformance.plan import Plan
from conformance.system import System

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)


def page(
    saved: Sequence[Saved], systems: Mapping[str, type[System]], plan: Plan, missing: Sequence[str]
) -> str:
    """Return the page. `missing` are the names of trials that were not run."""
    rows = of(Survival, [figure for entry in saved for figure in entry.figures])
    remarks = {
        name: [(fill, column, tried.remarks.get(column.name, "")) for fill, column in behind(rows, name)]
        for name, tried in systems.items()
        if tried.remarks
    }
    return _TEMPLATES.get_template("page.md.j2").render(
        saved=saved,
        rows=rows,
        fills=list(Fill),
        columns=COLUMNS,
        systems=systems,
        plan=plan,
        remarks=remarks,
        missing=missing,
        days=sorted(entry.measured_at[:10] for entry in saved),
        MIB=MIB,
        stuck=[row for row in rows if row.recovery is Recovery.NEVER],
        stalled=[row for row in rows if row.log_dirs_lost and not row.brokers_lost],
    )
