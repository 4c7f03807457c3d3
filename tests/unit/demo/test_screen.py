"""The demo's output fits the terminal and is true."""

from __future__ import annotations

import io
import threading
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from rich.console import Console

from kquota.core.decision import Cause, Decision, Reason, State
from testbed.demo.load import Progress
from testbed.demo.load_process import LoadProcess
from testbed.demo.screen import Screen, sparkline
from testbed.demo.sight import BrokerSight, Sight, VolumeSight
from tests.unit.demo.test_tally import applied

TOPICS = ("orders", "payments")


def decision(headroom: str) -> Decision:
    reason = Reason(Cause.OWN, Fraction(headroom), broker_id=3, volume="/dev/loop10")
    others = tuple(Reason(Cause.SOFT, Fraction(1, 2), broker_id=3, volume=f"/dev/loop{n}") for n in (11, 12))
    return Decision(Fraction(headroom), (reason, *others), (), False, None, datetime.now(UTC))


def throttled() -> Sight:
    volumes = tuple(
        VolumeSight(f"/dev/loop{number}", 602_000_000, 431_123_456, 331_000_000, 481_000_000, 0.42)
        for number in (10, 11)
    )
    brokers = [
        BrokerSight(n, True, volumes, decision("0.424242"), applied(State.THROTTLE)) for n in (1, 2, 3)
    ]
    return Sight(1.0, tuple(brokers))


class Load(LoadProcess):
    """The reports of a client, without its process."""

    def __init__(self, bytes_per_second: int) -> None:
        self._history = [Progress(at=0.0), Progress(at=1.0, records=1, bytes=bytes_per_second)]
        self._lock = threading.Lock()


def shown(sight: Sight, columns: int, *, protected: bool = True, events: int = 3) -> list[str]:
    console = Console(width=columns, height=24, file=io.StringIO(), force_terminal=False)
    screen = Screen(
        console, "kquota demo: Kafka 4.4.0, three brokers, protected", TOPICS, protected=protected
    )
    for _ in range(events):
        screen.event(
            "PAUSE: volume /dev/loop10 of broker 3 is over its hard limit, and 1 more volume over a limit"
        )
    with console.capture() as capture:
        console.print(screen.picture(sight, columns))
    return capture.get().splitlines()


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_the_picture_fits_and_says_state_and_reason(columns: int) -> None:
    lines = shown(throttled(), columns)

    assert max(len(line) for line in lines) <= columns
    joined = " ".join(line.strip() for line in lines)
    assert "THROTTLE to 0.424242: volume /dev/loop10 of broker 3 has 42 % of the way" in joined
    assert sum("THROTTLE 0.42 THROTTLE 0.50" in " ".join(line.split()) for line in lines) == 3
    assert all("┆" in line and "┃" in line for line in lines if "/dev/loop1" in line and "72%" in line)


def test_the_rates_of_both_applications_are_below_each_other() -> None:
    console = Console(width=80, height=24, file=io.StringIO())
    screen = Screen(console, "t", TOPICS, protected=True)
    for number, meter in enumerate((*screen.produced, *screen.consumed)):
        meter.load = Load(1_230_000 * number)

    with console.capture() as capture:
        console.print(screen.picture(throttled(), 80))
    lines = [line.rstrip() for line in capture.get().splitlines()]

    assert max(len(line) for line in lines) <= 80
    first = next(number for number, line in enumerate(lines) if line.startswith("producers"))
    assert [line.split()[:-3] for line in lines[first : first + 4]] == [
        ["producers", "orders"],
        ["payments", "1.23MB/s"],
        ["consumers", "orders", "2.46MB/s"],
        ["payments", "3.69MB/s"],
    ]


def test_many_events_do_not_push_the_table_off_a_small_terminal() -> None:
    assert len(shown(throttled(), 80, events=40)) <= 24


def test_a_dead_broker_is_seen() -> None:
    alive = throttled()
    sight = Sight(1.0, (*alive.brokers[:2], replace(alive.brokers[2], running=False)))

    lines = shown(sight, 80, protected=False)

    assert sum(line.rstrip().endswith("down") for line in lines) == 1
    assert sum(line.rstrip().endswith("running") for line in lines) == 2


def test_a_plain_line_fits_80_columns() -> None:
    screen = Screen(Console(width=80, file=io.StringIO()), "t", TOPICS, protected=True)
    for meter, rate in zip(screen.produced, (52_600_000, 2_000_000), strict=True):
        meter.load = Load(rate)

    line = screen.line(throttled())

    assert len(line) <= 80
    assert "THROTTLE 0.42" in line
    assert "3:72/72%" in line
    assert line.endswith("in 52.6MB/s 2.00MB/s")


def test_a_plug_in_without_a_decision_is_shown_as_lost() -> None:
    lost = replace(applied(State.PAUSE), lost="the decision file is missing", sequence=None)
    sight = Sight(1.0, (BrokerSight(1, True, throttled().brokers[0].volumes, None, lost),))

    assert any("PAUSE (lost)" in line for line in shown(sight, 80))
    assert sight.lost_decisions == ["broker 1 has no decision in force: the decision file is missing"]


@pytest.mark.parametrize(
    ("values", "bars"),
    [([], ""), ([0.0, 0.0], "  "), ([0.0, 1.0, 4.0, 8.0], " ▁▄█"), ([5.0], "█"), ([0.001, 8.0], "▁█")],
)
def test_a_sparkline_shows_zero_as_nothing_and_little_as_something(values: list[float], bars: str) -> None:
    assert sparkline(values) == bars
