"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from math import isnan

_SIZES = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
# Stands where there is no figure.
NONE = "\N{EN DASH}"
NOT_KNOWN = "not known"
# Between a number and its unit: a line never ends there.
_GAP = "\N{NO-BREAK SPACE}"
_HOUR, _DAY = 3600, 86_400


def size(count_bytes: float) -> str:
    """Return bytes with a unit of powers of 1000."""
    number, unit = float(count_bytes), 0
    while abs(number) >= 999.5 and unit < len(_SIZES) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.3g}{_GAP}{_SIZES[unit]}"


def change(count_bytes: float) -> str:
    """Return a change of bytes with its sign."""
    sign = "+" if count_bytes > 0 else "\N{MINUS SIGN}" if count_bytes < 0 else ""
    return f"{sign}{size(abs(count_bytes))}"


def known(count_bytes: float | None, words: Callable[[float], str] = size) -> str:
    """Return a figure in words, or that it is not known."""
    return NOT_KNOWN if count_bytes is None or isnan(count_bytes) else words(count_bytes)


def rate(bytes_per_second: float) -> str:
    """Return a rate."""
    return f"{size(bytes_per_second)}/s"


def percent(ratio: float, decimals: int = 1) -> str:
    """Return a ratio in percent."""
    return f"{100 * ratio:.{decimals}f}{_GAP}%"


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    if seconds < 90:
        return f"{seconds:.0f}{_GAP}s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f}{_GAP}min"
    return f"{seconds / _HOUR:.0f}{_GAP}h" if seconds < 2 * _DAY else f"{seconds / _DAY:.1f}{_GAP}d"


def days(number: float | None) -> str:
    """Return days from now; None is beyond the horizon."""
    if number is None:
        return NONE
    if number < 1:
        return f"{24 * number:.0f}{_GAP}h" if number > 0 else "now"
    return f"{number:.0f}{_GAP}d" if number >= 10 else f"{number:.1f}{_GAP}d"


def day_of(seconds: float) -> str:
    """Return the day of an epoch second, UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%-d %b")


def moment_of(seconds: float) -> str:
    """Return the minute of an epoch second, UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
