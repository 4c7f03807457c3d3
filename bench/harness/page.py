"""Results and claims as a page of Markdown, by a template for each bench. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bench.harness.claims import Claim
from bench.harness.results import Saved

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parents[1]),
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)


def shown(value: float | Sequence[float] | None, form: str, unit: float = 1) -> str:
    """Return a figure divided by its unit, as a format specification has it; several with blanks between."""
    if value is None:
        return "-"
    if isinstance(value, Sequence):
        return " ".join(shown(one, form, unit) for one in value)
    return format(value if unit == 1 else value / unit, form)


_TEMPLATES.filters["as"] = shown
_TEMPLATES.filters["median"] = median


def page(
    template: str,
    command: str,
    saved: Sequence[Saved],
    claims: Iterable[Claim],
    missing: Sequence[str] = (),
    *,
    whole: bool = False,
    **functions: Callable[..., object],
) -> str:
    """Return the page, or with all rows the ``whole`` one. Its template has the figures as ``of``, by the
    names of their kinds.

    ``missing`` was not measured; the template may call ``functions``.
    """
    of: defaultdict[str, list[object]] = defaultdict(list)
    for figure in (figure for entry in saved for figure in entry.figures):
        of[type(figure).__name__].append(figure)
    ordered = sorted(claims, key=lambda claim: not claim.asserted)
    missed: dict[str, list[Claim]] = {}
    for claim in ordered:
        if not claim.holds and claim.cause:
            missed.setdefault(claim.cause, []).append(claim)
    days = sorted(entry.measured_at[:10] for entry in saved)
    context = {
        "command": command,
        "saved": saved,
        "machines": _machines([entry.machine for entry in saved]),
        "days": days,
        "missing": missing,
        "of": of,
        "whole": whole,
    }
    return _TEMPLATES.get_template(template).render(context, claims=ordered, missed=missed, **functions)


def _machines(named: Sequence[str]) -> str:
    """Return each part of the machines' names once, as several are alike but for the version of one part."""
    parts = (part for name in named for part in name.split(", "))
    return ", ".join(dict.fromkeys(parts))
