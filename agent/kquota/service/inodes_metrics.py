"""Metrics of the inodes of a volume, where their number is fixed."""

from __future__ import annotations

from fractions import Fraction

from kquota.policy.volume import Volume

INODES_FIGURES = {
    "inodes": "Inodes of the volume; absent where its file system makes them as it needs them.",
    "inodes_free": "Inodes that are free for the broker's user; without one, no file can be made.",
    "soft_limit_inodes_free": "Free inodes below which producers are slowed.",
    "hard_limit_inodes_free": "Free inodes from which on producers are paused.",
}


def inodes_figures(volume: Volume) -> dict[str, float | None]:
    """Return them by name; none for a volume whose inodes are not judged."""
    inodes = volume.inodes
    if inodes is None:
        return {}
    return {
        "inodes": inodes.total,
        "inodes_free": inodes.free,
        "soft_limit_inodes_free": inodes.free_at(Fraction(1)),
        "hard_limit_inodes_free": inodes.free_at(Fraction(0)),
    }
