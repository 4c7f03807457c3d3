"""The table of a status: a row for each volume, in the columns that a terminal has room for."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Span, Text

from kquota.display.bar import usage_bar
from kquota.display.figures import STATE_STYLES, age_text, headroom_style, size_text, state_text, until_text
from kquota.policy.timestamps import parse_utc

_GAP = 1
_NARROW_BELOW = 92
_LONGEST_BAR = 40
_SHORTEST_BAR = 8
_WANTED_BAR = 16
_LONGEST_NAME = 40


class Order(Enum):
    """The sort order of the rows; the value names it."""

    BROKER = "broker"
    HEADROOM = "least left first"
    TIME = "soonest at its limit first"
    FILL = "fastest first"

    def next(self) -> Order:
        """Return the order after this one, round and round."""
        orders = list(Order)
        return orders[(orders.index(self) + 1) % len(orders)]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: a volume, or (None) a remark about a broker.

    ``names_broker`` is whether the broker's id, age and applied state are in this line; ``decides`` whether
    the volume is what holds the cluster back most.
    """

    broker: Mapping[str, Any]
    volume: Mapping[str, Any] | None
    names_broker: bool = True
    decides: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    width: int
    cell: Callable[[Row], Text | str]
    from_columns: int = 0
    right: bool = True


def status_rows(
    document: Mapping[str, Any], order: Order = Order.BROKER, *, troubled_only: bool = False
) -> list[Row]:
    """Return the rows of a status document; ``troubled_only`` leaves out what nothing is wrong with."""
    deciding = _deciding(document)
    rows = [row for broker in document["brokers"] for row in _rows_of(broker, document["at"], deciding)]
    if troubled_only:
        rows = [row for row in rows if is_troubled(row)]
    if order is Order.BROKER:
        return list(named_in_first_row(rows))
    return sorted(rows, key=lambda row: _rank(row, order))


def status_table(
    rows: Sequence[Row], longest_name: int, columns: int, *, decided: str | None, ascii_only: bool = False
) -> RenderableType:
    """Lay rows out for this many columns (60 and more); ``decided`` is the state that brokers have to
    apply, None where they need not.
    """
    fixed = [
        _Column("%", 6, _of_volume(_percent)),
        _Column("SIZE", 5, _of_volume(lambda volume: _size(volume["capacity_bytes"])), 136),
        _Column("SOFT", 5, _of_volume(lambda volume: _size(volume["soft_bytes"])), 136),
        _Column("HARD", 5, _of_volume(lambda volume: _size(volume["hard_bytes"])), 136),
        _Column("LEFT", 5, _of_volume(_left), 80),
        _Column("FILL/s", 6, _of_volume(_fill), 92),
        _Column("TO SOFT", 7, _of_volume(lambda volume: until_text(volume["seconds_to_soft"])), 108),
        _Column("TO HARD", 7, _of_volume(lambda volume: until_text(volume["seconds_to_hard"]))),
        _Column("MODE", 7, lambda row: _mode(row, decided), right=False),
        _Column(
            "APPLIED",
            8 if columns < _NARROW_BELOW else 15,
            lambda row: _applied(row, decided, narrow=columns < _NARROW_BELOW, ascii_only=ascii_only),
            right=False,
        ),
        _Column("AGE", 5, lambda row: age_text(row.broker["age_seconds"]) if row.names_broker else "", 68),
    ]
    fixed = [column for column in fixed if columns >= column.from_columns]
    flexible = columns - 6 - sum(column.width for column in fixed) - _GAP * (len(fixed) + 2)
    name = min(
        longest_name + 2, _LONGEST_NAME, flexible - min(_WANTED_BAR, max(flexible // 3, _SHORTEST_BAR))
    )
    bar = max(_SHORTEST_BAR, min(flexible - name, _LONGEST_BAR))
    first = [
        _Column("BROKER", 6, _broker, right=False),
        _Column("VOLUME", name, lambda row: _name(row, name, ascii_only=ascii_only), right=False),
        _Column("USED", bar, lambda row: _bar(row, name, bar, ascii_only=ascii_only), right=False),
    ]
    shown = [*first, *fixed]
    return _Lines(shown, rows)


class _Lines:
    """A heading and a line for each row. Rich's own tables weigh and wrap every cell: thousands of volumes
    take seconds, and here the widths are known.
    """

    def __init__(self, columns: Sequence[_Column], rows: Sequence[Row]) -> None:
        self._columns, self._rows = columns, rows

    def __rich_console__(self, console: Console, _options: ConsoleOptions) -> RenderResult:
        """Render it."""
        heading = [column.title for column in self._columns]
        yield from _line(self._columns, heading, "bold dim").render(console)
        yield Segment.line()
        for row in self._rows:
            cells = [column.cell(row) for column in self._columns]
            yield from _line(self._columns, cells, "" if row.volume else "dim").render(console)
            yield Segment.line()


def _line(columns: Sequence[_Column], cells: Sequence[Text | str], style: str) -> Text:
    """Put cells next to each other, each as wide as its column: longer text is cut off."""
    pieces: list[str] = []
    spans: list[Span] = []
    at = 0
    for column, cell in zip(columns, cells, strict=True):
        plain = str(cell)
        missing = column.width - cell_len(plain)
        if missing < 0:
            plain, missing = set_cell_size(plain, column.width), 0
        before, after = (missing, 0) if column.right else (0, missing)
        start, length = at + before, len(plain)
        if isinstance(cell, Text):
            if cell.style:
                spans.append(Span(start, start + length, cell.style))
            spans += [
                Span(start + span.start, start + min(span.end, length), span.style)
                for span in cell.spans
                if span.start < length
            ]
        pieces.append(f"{' ' * before}{plain}{' ' * after}")
        at += before + length + after + _GAP
    return Text((" " * _GAP).join(pieces), style=style, spans=spans)


def longest_name(rows: Iterable[Row]) -> int:
    """Return how many characters the longest name with its remarks has."""
    return max((len(_full_name(row)) for row in rows), default=0)


def _deciding(document: Mapping[str, Any]) -> set[tuple[int, str]]:
    reasons = [reason for reason in document["reasons"] if reason["volume"] is not None]
    least = min((reason["headroom"] for reason in reasons), default=None)
    return {(r["broker_id"], r["volume"]) for r in reasons if r["headroom"] == least}


def _rows_of(broker: Mapping[str, Any], at: str, deciding: set[tuple[int, str]]) -> list[Row]:
    rows = [
        Row(broker, volume, decides=(broker["broker_id"], volume["volume"]) in deciding)
        for volume in broker["volumes"]
    ]
    flags = [name for name in ("joining", "quarantine", "maintenance") if broker[name]]
    if broker["active"] is False:
        flags.append("inactive")
    if not broker["counts"]:
        flags.append("does not count")
    if broker["undetermined"]:
        flags.append(f"not known: {broker['undetermined']}")
    elif broker["covered"]:
        flags.append(f"silent, {_cover(at, broker['covered']['until'])}")
    elif not rows:
        flags.append("no report")
    if flags:
        rows.append(Row(broker, None, text=", ".join(flags)))
    return rows


def _cover(at: str, until: str | None) -> str:
    """Return for how long a silent broker's volumes can't be at their hard limit; short, for 60 columns."""
    if until is None:
        return "no growth"
    seconds = (parse_utc(until) - parse_utc(at)).total_seconds()
    return f"{until_text(max(seconds, 0))} left"


def named_in_first_row(rows: Iterable[Row]) -> Iterable[Row]:
    """Name a broker in the first of its rows only."""
    before = None
    for row in rows:
        broker_id = row.broker["broker_id"]
        yield replace(row, names_broker=broker_id != before)
        before = broker_id


def is_troubled(row: Row) -> bool:
    """Return whether a row is a remark, or a volume that is over a limit, failed or without a state."""
    volume = row.volume
    return volume is None or volume["status"] != "ok" or volume["headroom"] is None or volume["headroom"] < 1


def _rank(row: Row, order: Order) -> tuple[float, int]:
    """Rows about brokers come first: something is the matter there."""
    broker_id = int(row.broker["broker_id"])
    if row.volume is None:
        return float("-inf"), broker_id
    far = float("inf")
    if order is Order.FILL:
        rate = row.volume["fill_bytes_per_second"]
        return far if rate is None else -rate, broker_id
    value = row.volume["headroom" if order is Order.HEADROOM else "seconds_to_hard"]
    return far if value is None else value, broker_id


def _broker(row: Row) -> Text:
    return Text(str(row.broker["broker_id"]) if row.names_broker else "", style="bold not dim")


def _full_name(row: Row) -> str:
    if row.volume is None:
        return ""
    remarks = _remarks(row.volume)
    return str(row.volume["volume"]) + (f" {remarks}" if remarks else "")


def _remarks(volume: Mapping[str, Any]) -> str:
    remarks = [remark for remark in (volume["status"], volume["role"]) if remark not in ("ok", "data")]
    if volume["latched"]:
        remarks.append("latched")
    inodes = volume["inodes"]
    if inodes is not None and inodes["headroom"] < 1:
        remarks.append("short of inodes")
    if volume["limits_problem"]:
        remarks.append("limits invalid")
    return ",".join(remarks)


def _name(row: Row, width: int, *, ascii_only: bool) -> Text:
    """Return the end of a name, which distinguishes volumes, and the volume's special properties."""
    if row.volume is None:
        return Text(f"  {_split(row.text, width - 2)[0]}", style="magenta not dim")
    remarks = _remarks(row.volume)
    remark = f" {remarks}" if remarks else ""
    name, cut = str(row.volume["volume"]), ".." if ascii_only else "…"
    room = max(width - 2 - len(remark), len(cut) + 3)
    if len(name) > room:
        name = cut + name[len(cut) - room :]
    pointer = (">" if ascii_only else "▶") if row.decides else " "
    style = "bold" if row.decides else ""
    return Text.assemble((f"{pointer} ", "bold red"), (name, style), (remark, "magenta"))


def _bar(row: Row, name_width: int, cells: int, *, ascii_only: bool) -> Text:
    if row.volume is None:
        return Text(_split(row.text, name_width - 2)[1], style="magenta not dim")
    return usage_bar(row.volume, cells, ascii_only=ascii_only)


def _split(text: str, width: int) -> tuple[str, str]:
    """Return the words that fit, and the rest, which goes into the next column."""
    first, *_ = textwrap.wrap(text, max(width, 1), break_long_words=False) or [""]
    if len(first) > width:
        return "", text
    return first, text[len(first) :].strip()


def _of_volume(cell: Callable[[Mapping[str, Any]], Text | str]) -> Callable[[Row], Text | str]:
    return lambda row: "" if row.volume is None else cell(row.volume)


def _percent(volume: Mapping[str, Any]) -> str:
    capacity_bytes = volume["capacity_bytes"]
    return f"{100 * volume['consumed_bytes'] / capacity_bytes:.1f}%" if capacity_bytes else ""


def _left(volume: Mapping[str, Any]) -> Text:
    headroom = volume["headroom"]
    if headroom is None:
        return Text("-", style=headroom_style(None))
    percent = 100 * headroom
    if 0 < headroom < 1:  # never shown as none or all while it is between
        percent = min(max(percent, 1), 99)
    return Text(f"{percent:.0f}%", style=headroom_style(headroom))


def _size(size_bytes: float | None) -> str:
    return "-" if size_bytes is None else size_text(size_bytes)


def _fill(volume: Mapping[str, Any]) -> str:
    rate = volume["fill_bytes_per_second"]
    return "-" if rate is None else f"{'+' if rate > 0 else ''}{size_text(rate)}"


def _mode(row: Row, decided: str | None) -> Text:
    if not row.names_broker:
        return Text()
    mode = row.broker["mode"]
    if mode is None:
        return Text("?", style="dim")
    return Text(str(mode), style="bold red not dim" if mode == "observe" and decided is not None else "")


def _applied(row: Row, decided: str | None, *, narrow: bool, ascii_only: bool) -> Text:
    if not row.names_broker:
        return Text()
    state, factor = applied_state(row.broker)
    if state is None:
        return Text("?" if narrow else "unverified", style="dim")
    if narrow and state == "THROTTLE" and factor is not None:
        text = f"{factor:.2f}"
    else:
        text = state_text(state, factor)
    if decided is not None and (state != decided or row.broker["mode"] == "observe"):
        text += " !" if ascii_only else " ≠"
    return Text(text, style=STATE_STYLES[state])


def applied_state(broker: Mapping[str, Any]) -> tuple[str | None, float | None]:
    """Return state and factor that a broker's plug-in applies by its record; None where that is not known."""
    applied = broker["applied"]
    if not applied or applied.get("State") not in STATE_STYLES:
        return None, None
    factor = applied.get("Factor")
    return str(applied["State"]), None if factor is None else float(factor)
