"""The plots, as inline SVG. Each is drawn 360 wide, so that it is read on a phone without zooming.

Colours are those of the page's style (`--open`, …), so that they follow light and dark; no plot expresses
anything by colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kquota_pipeline.report.figures import day_of, percent
from kquota_pipeline.report.markup import Markup, element, joined

WIDTH = 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 38, 8, 8, 20
_STATES = ("OPEN", "THROTTLE", "PAUSE")


@dataclass(frozen=True, slots=True)
class UsagePlot:
    """One volume: (epoch seconds, ratio) so far, limits as ratios (None if not known), and the forecast as
    (seconds, low, middle, high).
    """

    title: str
    points: Sequence[tuple[float, float]]
    soft_ratio: float | None
    hard_ratio: float | None
    band: Sequence[tuple[float, float, float, float]]


class _Axes:
    def __init__(
        self, start: float, end: float, low: float, high: float, height: int, left: float = _LEFT
    ) -> None:
        self._left = left
        self._start, self._end, self._low, self._high = start, max(end, start + 1), low, high
        self._height = height

    def x(self, seconds: float) -> float:
        width = WIDTH - self._left - _RIGHT
        return self._left + (seconds - self._start) / (self._end - self._start) * width

    def y(self, ratio: float) -> float:
        share = (min(max(ratio, self._low), self._high) - self._low) / (self._high - self._low)
        return self._height - _BOTTOM - share * (self._height - _TOP - _BOTTOM)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{self.x(at):.1f},{self.y(ratio):.1f}" for at, ratio in points)


def usage(plot: UsagePlot, height: int = 170) -> Markup:
    """Return one volume's usage in percent of its capacity, with its limits and the forecast's band."""
    ratios = [ratio for _, ratio in plot.points]
    if plot.soft_ratio is not None:
        ratios.append(plot.soft_ratio)
    low = max(0.0, min(ratios) - 0.05)
    low = int(low * 10) / 10
    start = plot.points[0][0]
    now = plot.points[-1][0]
    axes = _Axes(start, plot.band[-1][0] if plot.band else now, low, 1.0, height)
    parts = [_grid(axes, low, 1.0), _days(axes, start, plot.band[-1][0] if plot.band else now, height)]
    if plot.band:
        upper = [(at, high) for at, _, _, high in plot.band]
        lower = [(at, low_) for at, low_, _, _ in reversed(plot.band)]
        parts.append(element("polygon", points=axes.path([*upper, *lower]), class_="band"))
        parts.append(
            element(
                "polyline", points=axes.path([(at, mid) for at, _, mid, _ in plot.band]), class_="foretold"
            )
        )
    for name, ratio in (("soft", plot.soft_ratio), ("hard", plot.hard_ratio)):
        if ratio is not None and low < ratio <= 1:
            y = axes.y(ratio)
            parts.append(element("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y, class_=f"limit {name}"))
            parts.append(element("text", name, x=_LEFT + 4, y=y - 3, class_=f"label {name}"))
    parts.append(element("polyline", points=axes.path(plot.points), class_="usage"))
    parts.append(element("line", x1=axes.x(now), x2=axes.x(now), y1=_TOP, y2=height - _BOTTOM, class_="now"))
    return _svg(height, plot.title, parts)


def states(spans: Sequence[tuple[float, float, str]], height: int = 62) -> Markup:
    """Return the states over time; spans are (from, to, state) in epoch seconds."""
    start, end = spans[0][0], spans[-1][1]
    axes = _Axes(start, end, 0.0, 1.0, height, left=50)
    parts = [_days(axes, start, end, height)]
    lanes = {state: number for number, state in enumerate(_STATES)}
    lane = (height - _TOP - _BOTTOM) / len(_STATES)
    for begin, until, state in spans:
        parts.append(
            element(
                "rect",
                element("title", f"{state} {day_of(begin)} to {day_of(until)}"),
                x=axes.x(begin),
                width=max(0.8, axes.x(until) - axes.x(begin)),
                y=_TOP + lanes[state] * lane,
                height=lane - 1,
                class_=state.lower(),
            )
        )
    for state, number in lanes.items():
        parts.append(element("text", state.title(), x=0, y=_TOP + number * lane + lane * 0.75, class_="axis"))
    return _svg(height, "States over time", parts)


def shares(rows: Sequence[tuple[str, Sequence[float]]]) -> Markup:
    """Return stacked bars of the time in OPEN, THROTTLE and PAUSE; each row is (name, three shares)."""
    step = 34
    height = _TOP + step * len(rows) + 4
    parts = []
    for number, (name, parts_of_time) in enumerate(rows):
        top = _TOP + number * step
        parts.append(element("text", name, x=0, y=top + 10, class_="name"))
        left = 0.0
        for state, share in zip(_STATES, parts_of_time, strict=True):
            width = share * WIDTH
            if share > 0:
                bar = element(
                    "rect",
                    element("title", f"{state}: {percent(share)}"),
                    x=left,
                    width=max(width, 1.0),
                    y=top + 14,
                    height=13,
                    class_=state.lower(),
                )
                parts.append(bar)
            left += width
    return _svg(height, "Time in each state by policy", parts)


def bars(rows: Sequence[tuple[str, float, str]], title: str) -> Markup:
    """Return bars of shares (0 to 1 of the longest); each row is (name, share, figure)."""
    step = 32
    height = _TOP + step * len(rows) + 4
    parts = []
    for number, (name, share, figure) in enumerate(rows):
        top = _TOP + number * step
        parts.append(element("text", _short(name, 34), x=0, y=top + 10, class_="name"))
        parts.append(element("text", figure, x=WIDTH, y=top + 10, text_anchor="end", class_="figure"))
        parts.append(element("rect", x=0, width=WIDTH, y=top + 14, height=9, rx=2, class_="track"))
        parts.append(
            element("rect", x=0, width=max(2.0, share * WIDTH), y=top + 14, height=9, rx=2, class_="bar")
        )
    return _svg(height, title, parts)


def skew(brokers: Sequence[tuple[int, Sequence[tuple[str, float]]]], even_ratio: float) -> Markup:
    """Return the volumes of each broker as dots on a line from empty to full."""
    step = 20
    height = _TOP + step * len(brokers) + _BOTTOM
    axes = _Axes(0.0, 1.0, 0.0, 1.0, height)
    bottom = height - _BOTTOM
    parts = []
    for mark in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = axes.x(mark)
        parts.append(element("line", x1=x, x2=x, y1=_TOP, y2=bottom, class_="grid"))
        parts.append(
            element("text", percent(mark, 0), x=x, y=height - 6, text_anchor=_anchor(mark), class_="axis")
        )
    x = axes.x(even_ratio)
    parts.append(
        element(
            "line",
            element("title", f"even: {percent(even_ratio)}"),
            x1=x,
            x2=x,
            y1=_TOP,
            y2=bottom,
            class_="even",
        )
    )
    for number, (broker_id, volumes) in enumerate(brokers):
        y = _TOP + number * step + step / 2
        used = [ratio for _, ratio in volumes]
        parts.append(element("text", str(broker_id), x=_LEFT - 10, y=y + 4, text_anchor="end", class_="axis"))
        parts.append(element("line", x1=axes.x(min(used)), x2=axes.x(max(used)), y1=y, y2=y, class_="spread"))
        for name, ratio in volumes:
            dot = element(
                "circle",
                element("title", f"broker {broker_id}, {name}: {percent(ratio)}"),
                cx=axes.x(ratio),
                cy=y,
                r=4,
                class_="dot",
            )
            parts.append(dot)
    return _svg(height, "How full each broker's volumes are", parts)


def _svg(height: float, title: str, parts: list[Markup]) -> Markup:
    return element(
        "svg", element("title", title), joined(parts), viewBox=f"0 0 {WIDTH} {height:.0f}", role="img"
    )


def _grid(axes: _Axes, low: float, high: float) -> Markup:
    parts = []
    step = 0.1 if high - low <= 0.5 else 0.2
    mark = low
    while mark <= high + 1e-9:
        y = axes.y(mark)
        parts.append(element("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y, class_="grid"))
        parts.append(
            element("text", percent(mark, 0), x=_LEFT - 4, y=y + 3, text_anchor="end", class_="axis")
        )
        mark += step
    return joined(parts)


def _days(axes: _Axes, start: float, end: float, height: int) -> Markup:
    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        at = start + share * (end - start)
        parts.append(
            element("text", day_of(at), x=axes.x(at), y=height - 6, text_anchor=_anchor(share), class_="axis")
        )
    return joined(parts)


def _anchor(share: float) -> str:
    """Return how a mark's text is set at so much of the axis: at its ends, not beyond them."""
    return {0.0: "start", 1.0: "end"}.get(share, "middle")


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
