"""The plots of the documentation, as SVG; the same figures give the same file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.bounds import overshoot_bound_bytes
from bench.figures import Overshoot
from bench.scale.fleet import LIMITS, Course

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FROM_SECONDS = -12.0
_LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))


@contextmanager
def _plot(path: Path, creator: str, width_ratios: tuple[int, ...], height: float) -> Iterator[list[Axes]]:
    import matplotlib as mpl  # noqa: PLC0415 - slow to load, and of no use to the measurements

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "kquota", "svg.fonttype": "none", "font.size": 9})
    from matplotlib import pyplot as plt  # noqa: PLC0415

    size, columns = (9.5, height), len(width_ratios)
    figure, axes = plt.subplots(
        1, columns, figsize=size, width_ratios=width_ratios, layout="constrained", squeeze=False
    )
    yield list(axes[0])
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": creator})
    plt.close(figure)


def draw_overshoots(overshoots: Sequence[Overshoot], path: Path) -> None:
    """On the left a volume's way past its hard limit when it is filled flat out, on the right that against
    the bound; nothing where nothing was measured.
    """
    if not overshoots:
        return
    with _plot(path, "make bench", (3, 2), 4.2) as (way, bars):
        for number, seen in enumerate(overshoots):
            points = [(at, past / 1e6) for at, past in seen.curve if at >= _FROM_SECONDS]
            at, past = zip(*points, strict=True)
            way.plot(at, past, label=_label(seen), linestyle=_LINES[number % len(_LINES)])
        way.axhline(0, color="black", linewidth=0.8)
        way.axvline(0, color="black", linewidth=0.8)
        way.set_xlabel("seconds from the breach of the hard limit")
        way.set_ylabel("MB past the hard limit")
        way.set_title("A volume filled flat out by replication")
        way.legend(loc="lower right", fontsize=8)
        names = [_label(seen) for seen in overshoots]
        bounds = [overshoot_bound_bytes(seen) / 1e6 for seen in overshoots]
        measured = [max(0, seen.past_hard_bytes) / 1e6 for seen in overshoots]
        bars.barh(names, bounds, color="lightgray", label="bound: r·(τ + W/2) + requests + leak")
        bars.barh(names, measured, height=0.4, label="measured")
        bars.invert_yaxis()
        bars.set_xlabel("MB past the hard limit")
        bars.set_title("Against the bound")
        bars.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), fontsize=8)


def _label(seen: Overshoot) -> str:
    """Zone in seconds of full speed, and what holds producers."""
    zone_seconds = seen.zone_bytes / seen.fill_rate if seen.fill_rate else 0.0
    by = "fence" if seen.fence else "governor"
    return f"zone {zone_seconds:.1f} s, {by}" + ("" if seen.reached else ", not reached")


def draw_course(course: Course, path: Path) -> None:
    """How full a simulated fleet's fullest volume was, and the throttle factor."""
    with _plot(path, "make scale", (1,), 2.9) as (axes,):
        days = [course.scenario.days * i / len(course.fullest) for i in range(len(course.fullest))]
        axes.plot(days, course.fullest, label="fullest volume")
        axes.plot(days, course.factors, label="throttle factor", linestyle="--", linewidth=1)
        for name, limit in (("soft", LIMITS.soft), ("hard", LIMITS.hard)):
            level = float(1 - limit.level / 100)
            axes.axhline(level, color="gray", linewidth=0.8, linestyle=":")
            at = (2, 2)
            axes.annotate(f"{name} limit", (0, level), xytext=at, textcoords="offset points", color="gray")
        axes.set_ylim(0, 1.05)
        axes.set_xlim(0, course.scenario.days)
        axes.yaxis.set_major_formatter("{x:.0%}")
        axes.set_xlabel("days")
        axes.set_title(course.scenario.story)
        axes.legend(loc="lower right")
