"""Figures for people: sizes, ages and factors in few characters, and the colours of the three states."""

from __future__ import annotations

STATE_STYLES = {"OPEN": "green", "THROTTLE": "yellow", "PAUSE": "bold red"}
_UNITS = ("", "K", "M", "G", "T", "P", "E")


def size_text(size_bytes: float) -> str:
    """Return a size in at most five characters, in powers of 1000: 999, 12.3M, 1.50T."""
    value, unit = float(size_bytes), 0
    while abs(value) >= 999.5 and unit < len(_UNITS) - 1:
        value /= 1000
        unit += 1
    if unit == 0:
        return f"{value:.0f}"
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f}{_UNITS[unit]}"


def age_text(seconds: float | None) -> str:
    """Return an age in at most five characters: 0.4s, 12s, 3m, 2h, 5d."""
    if seconds is None:
        return "-"
    for limit, divisor, unit in ((10, 1, "s"), (120, 1, "s"), (7200, 60, "m"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{seconds:.1f}s" if limit == 10 else f"{seconds / divisor:.0f}{unit}"
    return f"{seconds / 86400:.0f}d"


def until_text(seconds: float | None) -> str:
    """Return in how long something will be, in at most five characters; "now" where it is."""
    if seconds is None:
        return "-"
    return "now" if seconds == 0 else ">999d" if seconds > 999 * 86400 else age_text(seconds)


def state_text(state: str, factor: float | None) -> str:
    """Return a state, with what it leaves to producers where that is not all or nothing."""
    return f"{state} {factor:.2f}" if state == "THROTTLE" and factor is not None else state


def headroom_style(headroom: float | None) -> str:
    """Return the colour of a headroom."""
    if headroom is None:
        return "magenta"
    return STATE_STYLES["OPEN" if headroom >= 1 else "THROTTLE" if headroom > 0 else "PAUSE"]
