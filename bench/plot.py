"""The plot of docs/sizing.md: a volume that is filled flat out, and where it stops."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.bounds import overshoot_bound_bytes
from bench.figures import Overshoot

PLOT = Path(__file__).resolve().parents[1] / "docs" / "img" / "overshoot.svg"
_FROM_SECONDS = -12.0
_LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))


def plot_overshoots(overshoots: Sequence[Overshoot], path: Path = PLOT) -> None:
    """Write an SVG: on the left the volume's way past its hard limit, on the right that against the bound."""
    if not overshoots:
        return
    import matplotlib as mpl  # noqa: PLC0415 - slow to load, and of no use to the measurements

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "kquota", "svg.fonttype": "none", "font.size": 9})
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, (way, bars) = plt.subplots(1, 2, figsize=(9.5, 4.2), width_ratios=(3, 2), layout="constrained")
    for number, seen in enumerate(overshoots):
        points = [(at, past / 1e6) for at, past in seen.curve if at >= _FROM_SECONDS]
        way.plot(
            [at for at, _ in points],
            [past for _, past in points],
            label=label(seen),
            linestyle=_LINES[number % len(_LINES)],
        )
    way.axhline(0, color="black", linewidth=0.8)
    way.axvline(0, color="black", linewidth=0.8)
    way.set_xlabel("seconds from the breach of the hard limit")
    way.set_ylabel("MB past the hard limit")
    way.set_title("A volume filled flat out by replication")
    way.legend(loc="lower right", fontsize=8)
    names = [label(seen) for seen in overshoots]
    bounds = [overshoot_bound_bytes(seen) / 1e6 for seen in overshoots]
    bars.barh(names, bounds, color="lightgray", label="bound: r·(τ + W/2) + requests + leak")
    bars.barh(
        names, [max(0, seen.past_hard_bytes) / 1e6 for seen in overshoots], height=0.4, label="measured"
    )
    bars.invert_yaxis()
    bars.set_xlabel("MB past the hard limit")
    bars.set_title("Against the bound")
    bars.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "make bench"})
    plt.close(figure)


def label(seen: Overshoot) -> str:
    """Zone in seconds of full speed, and what holds producers."""
    zone_seconds = seen.zone_bytes / seen.fill_rate if seen.fill_rate else 0.0
    by = "fence" if seen.fence else f"W = {seen.window_seconds:g} s"
    return f"zone {zone_seconds:.1f} s, {by}" + ("" if seen.reached else ", not reached")
