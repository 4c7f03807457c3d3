"""How a status document looks on a terminal: one sentence, then a line per volume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

STATE_STYLES = {"OPEN": "green", "THROTTLE": "yellow", "PAUSE": "bold red"}
_UNITS = ("", "K", "M", "G", "T", "P", "E")
_WIDE_COLUMNS = 136
_BAR_WIDE, _BAR_NARROW = 24, 10
# What the other columns take at most, with what is between them; the rest is the volume's name.
_OTHERS_WIDE, _OTHERS_NARROW = 118, 66
_LONGEST_NAME = 40


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


def usage_bar(volume: Mapping[str, Any], cells: int, *, ascii_only: bool = False) -> Text:
    """Draw consumption as a bar with a mark at the soft and at the hard limit."""
    full, empty, soft_mark, hard_mark = "#.:|" if ascii_only else "█░┆│"
    capacity = volume["capacity_bytes"]
    if not capacity:
        return Text("?" * cells, style="dim")
    filled = round(cells * volume["consumed_bytes"] / capacity)
    text = Text(full * filled + empty * (cells - filled), style=headroom_style(volume["headroom"]))
    for key, mark in (("soft_bytes", soft_mark), ("hard_bytes", hard_mark)):
        if volume[key] is not None and 0 <= volume[key] <= capacity:
            at = min(int(cells * volume[key] / capacity), cells - 1)
            text = Text.assemble(text[:at], (mark, "bold"), text[at + 1 :])
    return text


def headroom_style(headroom: float | None) -> str:
    """Return the colour of a headroom."""
    if headroom is None:
        return "magenta"
    return STATE_STYLES["OPEN" if headroom >= 1 else "THROTTLE" if headroom > 0 else "PAUSE"]


def status_view(document: Mapping[str, Any], columns: int, *, ascii_only: bool = False) -> RenderableType:
    """Lay the document out for a terminal of so many columns (80 and more)."""
    wide = columns >= _WIDE_COLUMNS
    name_width = min(_LONGEST_NAME, columns - (_OTHERS_WIDE if wide else _OTHERS_NARROW))
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold dim")
    table.add_column("BROKER", no_wrap=True)
    table.add_column("VOLUME", no_wrap=True, overflow="ellipsis", max_width=name_width)
    table.add_column("USED", no_wrap=True, width=_BAR_WIDE if wide else _BAR_NARROW)
    table.add_column("%", justify="right", no_wrap=True)
    if wide:
        for title in ("SIZE", "SOFT", "HARD"):
            table.add_column(title, justify="right", no_wrap=True)
    table.add_column("LEFT", justify="right", no_wrap=True)
    if wide:
        table.add_column("FILL/s", justify="right", no_wrap=True)
        table.add_column("TO SOFT", justify="right", no_wrap=True)
    table.add_column("TO HARD", justify="right", no_wrap=True)
    table.add_column("AGE", justify="right", no_wrap=True)
    table.add_column("APPLIED", no_wrap=True)
    for broker in document["brokers"]:
        for row in _broker_rows(broker, name_width, wide=wide, ascii_only=ascii_only):
            table.add_row(*row)
    return Group(_headline(document), *_notes(document), Text(), table)


def _headline(document: Mapping[str, Any]) -> Text:
    state, sentence = document["state"], str(document["sentence"])
    return Text.assemble((state, STATE_STYLES[state]), sentence.removeprefix(state))


def _notes(document: Mapping[str, Any]) -> list[Text]:
    notes = [Text(str(note), style="dim") for note in document.get("notes", ())]
    return [*notes, *(Text(str(problem), style="red") for problem in document.get("problems", ()))]


def _broker_rows(
    broker: Mapping[str, Any], name_width: int, *, wide: bool, ascii_only: bool
) -> list[Sequence[Text | str]]:
    flags = [name for name in ("joining", "quarantine", "maintenance") if broker[name]]
    if broker["active"] is False:
        flags.append("inactive")
    if broker["undetermined"]:
        flags.append(broker["undetermined"])
    name = Text(str(broker["broker_id"]), style="bold")
    age, applied = age_text(broker["age_seconds"]), _applied(broker["applied"])
    blanks = [""] * (11 if wide else 6)
    rows: list[Sequence[Text | str]] = []
    for index, volume in enumerate(broker["volumes"]):
        first = index == 0
        sizes = [_size_or_dash(volume[key]) for key in ("capacity_bytes", "soft_bytes", "hard_bytes")]
        rows.append(
            [
                name if first else "",
                _volume_name(volume, name_width, ascii_only=ascii_only),
                usage_bar(volume, _BAR_WIDE if wide else _BAR_NARROW, ascii_only=ascii_only),
                _percent(volume),
                *(sizes if wide else ()),
                _left(volume),
                *([_fill(volume), _until(volume["seconds_to_soft"])] if wide else ()),
                _until(volume["seconds_to_hard"]),
                age if first else "",
                applied if first else "",
            ]
        )
    if not rows:
        rows.append([name, Text("no report", style="dim"), *blanks])
    if flags:
        rows.append(["", Text(", ".join(flags), style="magenta"), *blanks])
    return rows


def _volume_name(volume: Mapping[str, Any], width: int, *, ascii_only: bool) -> Text:
    """Return the end of a name, which tells volumes apart, and what is special about the volume."""
    marks = [mark for mark in (volume["status"], volume["role"]) if mark not in ("ok", "data")]
    if volume["latched"]:
        marks.append("latched")
    mark = " " + ",".join(marks) if marks else ""
    name, cut = str(volume["volume"]), ".." if ascii_only else "…"
    room = max(width - len(mark), len(cut) + 1)
    if len(name) > room:
        name = cut + name[len(cut) - room :]
    return Text.assemble(name, (mark, "magenta"))


def _percent(volume: Mapping[str, Any]) -> str:
    capacity = volume["capacity_bytes"]
    return f"{100 * volume['consumed_bytes'] / capacity:.1f}%" if capacity else "-"


def _left(volume: Mapping[str, Any]) -> Text:
    headroom = volume["headroom"]
    return Text("-" if headroom is None else f"{100 * headroom:.0f}%", style=headroom_style(headroom))


def _fill(volume: Mapping[str, Any]) -> str:
    rate = volume["fill_bytes_per_second"]
    return "-" if rate is None else f"{'+' if rate > 0 else ''}{size_text(rate)}"


def _until(seconds: float | None) -> str:
    return "now" if seconds == 0 else age_text(seconds)


def _size_or_dash(size_bytes: int | None) -> str:
    return "-" if size_bytes is None else size_text(size_bytes)


def _applied(applied: Mapping[str, Any] | None) -> Text:
    if not applied or applied.get("State") not in STATE_STYLES:
        return Text("unverified", style="dim")
    state = str(applied["State"])
    factor = applied.get("Factor")
    text = f"{state} {float(factor):.2f}" if state == "THROTTLE" and factor is not None else state
    return Text(text, style=STATE_STYLES[state])
