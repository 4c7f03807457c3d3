"""The course of a simulated fleet as a picture: how full its fullest volume was, and the throttle factor."""

from __future__ import annotations

from pathlib import Path

from bench.scale.fleet import LIMITS, Course


def draw(course: Course, path: Path) -> None:
    """Write an SVG; the same course gives the same file."""
    import matplotlib as mpl  # noqa: PLC0415 - slow to load, and of no use to the measurements

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "kquota", "svg.fonttype": "none", "font.size": 9})
    from matplotlib import pyplot as plt  # noqa: PLC0415
    from matplotlib.ticker import PercentFormatter  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(9.5, 2.9), layout="constrained")
    days = [course.scenario.days * i / len(course.fullest) for i in range(len(course.fullest))]
    axes.plot(days, course.fullest, label="fullest volume")
    axes.plot(days, course.factors, label="throttle factor", linestyle="--", linewidth=1)
    for name, limit in (("soft", LIMITS.soft), ("hard", LIMITS.hard)):
        level = float(1 - limit.level / 100)
        axes.axhline(level, color="gray", linewidth=0.8, linestyle=":")
        axes.annotate(f"{name} limit", (0, level), xytext=(2, 2), textcoords="offset points", color="gray")
    axes.set_ylim(0, 1.05)
    axes.set_xlim(0, course.scenario.days)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("days")
    axes.set_title(course.scenario.story)
    axes.legend(loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "make scale"})
    plt.close(figure)
