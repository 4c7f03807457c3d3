"""Every order gets into the history, whichever agents live, and seldom twice."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kquota.guard.folded import Folded
from kquota.guard.orders import OrderNews, order_news
from kquota.history.history import TURN_SECONDS, WRITTEN_SECONDS, HistoryRecorder, OrderTurns
from kquota.policy.events import HoldEvent
from tests.unit.guard.cycles import START, Bench, arrival, moment, order
from tests.unit.policy.clusters import bounded

ORDER = OrderNews("the hold was released by bob", {"Key": "hold", "Order": None})
REPORT_SECONDS = 5


class Agents:
    """The turns of agents that each live from one second to another, and report every five seconds."""

    def __init__(self, lives: dict[int, list[tuple[int, int]]]) -> None:
        self.lives = lives
        self.written: list[tuple[int, int]] = []  # when, by whom

    def instance(self, broker_id: int, second: int) -> str | None:
        for number, (begin, end) in enumerate(self.lives[broker_id]):
            if begin <= second < end:
                return f"{broker_id}-{number}"
        return None

    def run(self, ordered_at: int, until: int) -> list[tuple[int, int]]:
        """Every agent reads the order at that second; its knowledge ends with its instance."""
        turns: dict[str, OrderTurns] = {}
        for second in range(until):
            alive = {i: name for i in self.lives if (name := self.instance(i, second)) is not None}
            at = START + timedelta(seconds=second)
            heard = {
                i: (name, at) for i, name in alive.items() if second % REPORT_SECONDS == i % REPORT_SECONDS
            }
            for broker_id, name in alive.items():
                mine = turns.setdefault(name, OrderTurns(broker_id))
                orders = (ORDER,) if second == ordered_at else ()
                mine.take(report_of(second, orders, heard))
                self.written += [(second, broker_id) for _ in mine.due(moment(second).monotonic_seconds)]
        return self.written


def report_of(second: int, orders: tuple[OrderNews, ...], heard: dict[int, Any]) -> Any:
    return SimpleNamespace(moment=moment(second), fold=Folded(orders=list(orders), heard=dict(heard)))


ALWAYS = [(0, 10_000)]


def test_the_lowest_agent_writes_at_once_and_alone() -> None:
    agents = Agents({1: ALWAYS, 2: ALWAYS, 3: ALWAYS})
    assert agents.run(ordered_at=30, until=200) == [(30, 1)]


def test_where_the_lowest_broker_s_agent_is_down_the_next_one_writes() -> None:
    agents = Agents({1: [(0, 29)], 2: ALWAYS, 3: ALWAYS})
    assert agents.run(ordered_at=30, until=200) == [(30 + TURN_SECONDS, 2)], "it was heard a moment before"
    agents = Agents({1: [(0, 29)], 2: ALWAYS, 3: ALWAYS})
    assert agents.run(ordered_at=120, until=300) == [(120, 2)], "it has been silent for long"


def test_an_agent_that_restarted_since_does_not_know_the_order() -> None:
    agents = Agents({1: [(0, 29), (33, 10_000)], 2: ALWAYS})
    assert agents.run(ordered_at=30, until=200) == [(30 + TURN_SECONDS, 2)]


@given(
    ends=st.lists(st.integers(min_value=0, max_value=200), min_size=3, max_size=3),
    begins=st.lists(st.integers(min_value=1, max_value=60), min_size=3, max_size=3),
)
@bounded(100)
def test_no_order_is_missing_as_long_as_one_agent_lives(ends: list[int], begins: list[int]) -> None:
    """Three agents die and start again whenever they like; the fourth lives."""
    lives = {i + 1: [(0, end), (end + begins[i], 10_000)] for i, end in enumerate(ends)}
    written = Agents({**lives, 4: ALWAYS}).run(ordered_at=100, until=400)
    # a record that was handed over is in the log some seconds later, if its agent lives until then
    kept = [at for at, by in written if not at < (ends[by - 1] if by < 4 else 0) < at + WRITTEN_SECONDS]
    assert kept


def test_the_time_of_an_order_is_the_topic_s_whoever_writes_it() -> None:
    at_ms = int(START.timestamp() * 1000) + 1234
    for broker_id in (1, 2):
        bench, recorder = Bench(), HistoryRecorder(broker_id, "an-instance", sample_interval_seconds=30)
        written: list[dict[str, Any]] = []
        bench.settle()
        hold = arrival("hold", order(600, Action="pause"))
        hold = hold._replace(appended_ms=at_ms)
        written += recorder.record(bench.run(hold, after=broker_id))
        (record,) = [one for one in written if one["Kind"] == "operator"]
        assert record["At"] == "2026-11-20T10:00:01.234Z"


def test_a_time_that_no_calendar_has_is_not_known() -> None:
    for timestamp_ms in (None, -1, 10**18):
        news = order_news(HoldEvent(None), (), timestamp_ms)
        assert news is not None
        assert news.at is None
