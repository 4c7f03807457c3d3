"""The display of the demo while it runs: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kquota.display.bar import usage_bar
from kquota.display.figures import STATE_STYLES, size_text, state_text
from kquota.formats.sentences import decision_sentence
from kquota.guard.applied_state import AppliedState
from kquota.policy.decision import Decision, Mode, State
from testbed.demo.load_process import LoadProcess
from testbed.demo.sight import BrokerSight, Sight, VolumeSight

_LINE_SECONDS = 1.0
_HISTORY_SECONDS = 0.5
_EVENT_INDENT = 10
_ROWS_ABOVE_EVENTS = 18
_FEWEST_EVENT_ROWS = 4
_PLAIN_COLUMNS = 80
_SPARKS = " ▁▂▃▄▅▆▇█"
_WIDE_COLUMNS = 100
# Client, topic, rate, total and the spaces between them.
_COLUMNS_BESIDE_COURSE = 52


class Meter:
    """The rate of one client over time."""

    def __init__(self, topic: str, verb: str) -> None:
        self.topic = topic
        self.verb = verb
        self.load: LoadProcess | None = None
        self._history: deque[float] = deque(maxlen=48)
        self._next_at = 0.0

    @property
    def rate_bytes_per_second(self) -> float:
        """Over the last second."""
        return self.load.rate_bytes_per_second() if self.load else 0.0

    def line(self, title: str, cells: int) -> Text:
        """Topic, rate, its course, and the total."""
        now = time.monotonic()
        if self.load and now >= self._next_at:
            self._next_at = now + _HISTORY_SECONDS
            self._history.append(self.rate_bytes_per_second)
        latest = self.load.latest if self.load else None
        total = size_text(latest.bytes if latest else 0)
        course = sparkline(list(self._history)[-cells:])
        return Text.assemble(
            (f"{title:<11}{self.topic:<9}", "bold"),
            f"{size_text(self.rate_bytes_per_second):>6}B/s  ",
            (f"{course:<{cells}}", "cyan"),
            (f"  {total}B {self.verb}", "dim"),
        )


def sparkline(values: Sequence[float]) -> str:
    """A bar per value, the largest one full; nothing is nothing."""
    largest = max(values, default=0.0)
    if largest <= 0:
        return " " * len(values)
    top = len(_SPARKS) - 1
    return "".join(_SPARKS[min(top, -int(-value / largest * top // 1))] for value in values)


class Screen:
    """Shows sights and events."""

    def __init__(self, console: Console, title: str, topics: Sequence[str], *, protected: bool) -> None:
        self._console = console
        self._title = title
        self._protected = protected
        self._events: list[Text] = []
        self._started = time.monotonic()
        self._next_line = 0.0
        self._live: Live | None = None
        self.produced = [Meter(topic, "acknowledged") for topic in topics]
        self.consumed = [Meter(topic, "read") for topic in topics]

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, redirect_stderr=False)
            self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._live:
            self._live.stop()

    def event(self, text: str, style: str = "") -> None:
        """Something happened that is worth a line of its own."""
        event = Text.assemble((f"{self._elapsed():6.1f} s  ", "dim"), (text, style))
        self._events.append(event)
        if not self._live:
            for line in self._wrapped(event, _PLAIN_COLUMNS):
                self._console.print(line, soft_wrap=True)

    def show(self, sight: Sight) -> None:
        """Show the present state; on no terminal a line a second."""
        if self._live:
            self._live.update(self.picture(sight, self._console.width), refresh=True)
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _LINE_SECONDS
            self._console.print(self.line(sight), soft_wrap=True)

    def picture(self, sight: Sight, columns: int) -> RenderableType:
        """The whole picture, for a terminal of that many columns (80 and more)."""
        clock = f"{int(self._elapsed()) // 60}:{int(self._elapsed()) % 60:02}"
        head = Table.grid(expand=True)
        head.add_column(no_wrap=True, overflow="ellipsis")
        head.add_column(justify="right", width=6)
        head.add_row(Text(self._title, style="bold"), clock)
        cells = min(48, columns - _COLUMNS_BESIDE_COURSE)
        return Group(
            head,
            *self._headline_rows(sight, columns),
            Text(),
            self._table(sight, wide=columns >= _WIDE_COLUMNS),
            Text(),
            *_lines("producers", self.produced, cells),
            *_lines("consumers", self.consumed, cells),
            Text(),
            *self._newest_events(columns),
        )

    def line(self, sight: Sight) -> str:
        """One line of at most 80 columns: the percentages of each broker's volumes, and producers' rates."""
        brokers = "  ".join(
            f"{broker.broker_id}:"
            + (
                "/".join(f"{_percentage(volume):2.0f}" for volume in broker.volumes) + "%"
                if broker.running
                else "down"
            )
            for broker in sight.brokers
        )
        state = _decided(sight.worst_decision).plain if self._protected else ""
        rates = "".join(f" {size_text(meter.rate_bytes_per_second):>5}B/s" for meter in self.produced)
        return f"{self._elapsed():6.1f} s  {state:<14}{brokers}  in{rates}"

    def _newest_events(self, columns: int) -> list[Text]:
        rows = max(_FEWEST_EVENT_ROWS, self._console.height - _ROWS_ABOVE_EVENTS)
        return [line for event in self._events for line in self._wrapped(event, columns)][-rows:]

    def _wrapped(self, event: Text, columns: int) -> list[Text]:
        """Continuation lines are indented below the text, next to the times."""
        stamp, text = event[:_EVENT_INDENT], event[_EVENT_INDENT:]
        lines = text.wrap(self._console, columns - _EVENT_INDENT)
        indented = [Text(" " * _EVENT_INDENT) + line for line in lines[1:]]
        return [stamp + lines[0], *indented]

    def _elapsed(self) -> float:
        return time.monotonic() - self._started

    def _headline_rows(self, sight: Sight, columns: int) -> list[Text]:
        """Two rows at least, so that the table below does not jump."""
        rows = list(self._headline(sight).wrap(self._console, columns))
        return [*rows, Text()] if len(rows) < 2 else rows

    def _headline(self, sight: Sight) -> Text:
        if not self._protected:
            return Text("kquota is not installed; Kafka alone", style="dim")
        decision = sight.worst_decision
        if decision is None:
            return Text("no decision yet", style="dim")
        sentence = decision_sentence(decision)
        state = decision.state.value
        return Text.assemble((state, STATE_STYLES[state]), sentence.removeprefix(state))

    def _table(self, sight: Sight, *, wide: bool) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold dim")
        for title in ("BROKER", "VOLUME"):
            table.add_column(title, no_wrap=True)
        table.add_column("USED", no_wrap=True)
        for title in ("%", "FREE", *(("SIZE",) if wide else ())):
            table.add_column(title, justify="right", no_wrap=True)
        for title in ("DECIDED", "ENFORCED") if self._protected else ("BROKER",):
            table.add_column(title, no_wrap=True, min_width=13)
        for broker in sight.brokers:
            for index, volume in enumerate(broker.volumes):
                table.add_row(*self._row(broker, volume, first=index == 0, wide=wide))
        return table

    def _row(self, broker: BrokerSight, volume: VolumeSight, *, first: bool, wide: bool) -> list[Text | str]:
        free_bytes = volume.capacity_bytes - volume.consumed_bytes
        row: list[Text | str] = [
            Text(str(broker.broker_id) if first else "", style="bold"),
            volume.name,
            usage_bar(asdict(volume), 32 if wide else 19),
            f"{_percentage(volume):.0f}%",
            size_text(free_bytes),
        ]
        if wide:
            row.append(size_text(volume.capacity_bytes))
        if not first:
            return row
        if not broker.running:
            return [*row, Text("down", style="bold red")]
        if not self._protected:
            return [*row, Text("running", style="green")]
        return [*row, _decided(broker.decision), _enforced(broker.applied)]


def _lines(title: str, meters: Sequence[Meter], cells: int) -> list[Text]:
    """The topics below each other, so that they are easy to compare."""
    return [meter.line("" if number else title, cells) for number, meter in enumerate(meters)]


def _percentage(volume: VolumeSight) -> float:
    return 100 * volume.consumed_bytes / volume.capacity_bytes


def _decided(decision: Decision | None) -> Text:
    if decision is None:
        return Text("-", style="dim")
    return _state_text(decision.state, decision.factor)


def _enforced(applied: AppliedState | None) -> Text:
    if applied is None:
        return Text("-", style="dim")
    if applied.mode is not Mode.ENFORCE:
        return Text("observing", style="dim")
    text = _state_text(applied.state, applied.factor)
    return text.append(" (lost)") if applied.lost is not None else text


def _state_text(state: State, factor: float) -> Text:
    return Text(state_text(state.value, factor), style=STATE_STYLES[state.value])
