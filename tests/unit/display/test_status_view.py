"""A status document on terminals of different widths, heights and abilities."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console, RenderableType
from rich.table import Table

from kquota.display.status_table import Order, status_rows
from kquota.display.status_view import KEYS, Looks, observes, status_view, watch_view
from tests.unit.display.documents import broken_glass, crowded, ordered, scoped, silent, troubled
from tests.unit.policy.golden import complaints
from tests.unit.wording import say

WIDTHS = (60, 72, 80, 92, 108, 135, 136, 200)


def console_of(columns: int, lines: int = 25, **options: Any) -> Console:
    return Console(file=io.StringIO(), width=columns, height=lines, highlight=False, **options)


def printed(console: Console, picture: RenderableType) -> str:
    console.print(picture)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def shown(columns: int, *, ascii_only: bool = False) -> str:
    return printed(console_of(columns), status_view(troubled(), columns, ascii_only=ascii_only))


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_silent_broker_is_shown_with_the_end_of_its_cover(columns: int) -> None:
    text = printed(console_of(columns), status_view(silent(), columns))
    flat = " ".join(text.split())
    assert "silent, 110s left" in flat
    assert "silent, no growth" in flat


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_topics_are_counted_and_brokers_that_hold_all_of_them_are_named(columns: int) -> None:
    document = scoped()
    flat = " ".join(printed(console_of(columns), status_view(document, columns)).split())
    assert flat.startswith(f"PAUSE for 37 topics: {say('over-hard', volume='/dev/sda1', broker=2)}")
    assert "every topic is held at brokers 2, 3: no fence is at work there" in flat
    for broker in document["brokers"]:
        broker["applied"]["Scope"] = "topics"
    assert "every topic" not in printed(console_of(columns), status_view(document, columns))


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("ascii_only", [False, True])
def test_it_fits_and_says_what_matters(columns: int, ascii_only: bool) -> None:
    text = shown(columns, ascii_only=ascii_only)
    assert max(map(len, text.splitlines())) <= columns
    flat = " ".join(text.split())
    assert flat.startswith(f"PAUSE: {say('over-hard', volume='/dev/sda1', broker=2)}")
    for part in (
        "inactive",
        "quarantine",
        "not known: missing",
        "8m",  # 5 GB to the hard limit at 10 MB/s
        "Producers flow again when volume /dev/sda1 of broker 2 is back",
        "decided PAUSE, applied by 0 of 3 brokers; THROTTLE at broker 3; unverified at brokers 1, 4",
        "producers of broker 1: [red]orders / app",
        "8.10MB/s (delayed by 420 ms)",
        "topics that grow on broker 1: orders 7.00MB/s",
        "broker 1 (this host): fine",
        "a broker can't be reached",
    ):
        assert part in flat, part
    assert ("#" in text) == ascii_only
    assert text.isascii() == ascii_only
    assert ("SOFT" in text.replace("TO SOFT", "")) == (columns >= 136)
    assert ("TO SOFT" in text) == (columns >= 108)
    assert ("+10.0M" in text) == (columns >= 92)
    assert ("50%" in text) == (columns >= 80)
    assert ("THROTTLE 0.25" in text) == (columns >= 92)
    assert ("28h" in text) == (columns >= 68)


@pytest.mark.accepts("G11", "G25")
@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("ascii_only", [False, True])
def test_orders_and_what_they_risk_are_seen_in_every_width(columns: int, ascii_only: bool) -> None:
    document = ordered()
    text = printed(console_of(columns), status_view(document, columns, ascii_only=ascii_only))
    assert max(map(len, text.splitlines())) <= columns
    flat = " ".join(text.split())
    terms = {"actor": "alice", "until": "2026-11-20T10:16:30.123Z", "reason": "a test"}
    for part in (
        f"OPEN: {say('held', action='open', **terms)}",
        say("order-given", broker=2, order="maintenance", **terms),
        "and 1 more order",
        f"Producers are held open although {say('over-hard', volume='/dev/sda1', broker=1)}:",
        "The report of broker 999999 does not count: the cluster has never listed that broker",
        say("signing-off"),
    ):
        assert part in flat, (part, flat)
    assert text.isascii() == ascii_only


def test_the_volume_that_decides_is_pointed_out() -> None:
    pointed = [line for line in shown(100).splitlines() if "▶" in line]
    assert len(pointed) == 1
    assert pointed[0].startswith("2")
    assert "> /dev/sda1" in shown(100, ascii_only=True)


def test_without_colour_it_says_the_same() -> None:
    colours = printed(console_of(100, force_terminal=True), status_view(troubled(), 100))
    plain = printed(console_of(100, force_terminal=True, no_color=True), status_view(troubled(), 100))
    assert "\x1b[31m" in colours or "\x1b[1;31m" in colours
    assert "\x1b[31m" not in plain
    assert "\x1b[1;31m" not in plain
    assert "▶" in plain


def test_where_it_is_only_observed_nobody_is_blamed_for_holding_nobody() -> None:
    document = troubled()
    document["local"]["applied"] = {"mode": "observe"}
    text = printed(console_of(110), status_view(document, 110))
    assert "decided PAUSE; only observed: the broker on this host holds no producer" in text
    assert "≠" not in text
    assert "≠" in shown(110)


@pytest.mark.accepts("G22")
@pytest.mark.parametrize("columns", WIDTHS)
def test_a_broken_glass_is_seen_in_every_width(columns: int) -> None:
    document = broken_glass()
    text = printed(console_of(columns), status_view(document, columns))
    assert max(map(len, text.splitlines())) <= columns
    flat = " ".join(text.split())
    assert "decided PAUSE, applied by 2 of 3 brokers; only observed at broker 2" in flat
    assert "Broker 2 holds no producer although enforcing is decided" in flat
    lines = text.splitlines()
    heading = next(line for line in lines if line.startswith("BROKER"))
    at = slice(heading.index("MODE"), heading.index("MODE") + len("enforce"))
    rows = {line[0]: line for line in lines if line[:1].isdigit()}
    assert [rows[number][at].strip() for number in "123"] == ["enforce", "observe", "enforce"]
    assert ["PAUSE ≠" in rows[number] for number in "123"] == [False, True, False]


@pytest.mark.accepts("G22")
def test_this_host_s_broken_glass_does_not_hide_who_holds_producers() -> None:
    document = broken_glass()
    document["local"] |= {"broker_id": 2, "applied": {"mode": "observe"}}
    text = " ".join(printed(console_of(100), status_view(document, 100)).split())
    assert "applied by 2 of 3 brokers; only observed at broker 2" in text


@pytest.mark.parametrize(
    ("decided", "lease_seconds_left", "applied", "expected"),
    [
        ("observe", 20, "observe", True),
        ("enforce", 20, "observe", True),  # the broker's own kquota.mode
        ("enforce", 20, "enforce", False),
        ("observe", 20, None, True),
        ("enforce", 20, None, False),
        # The agent has gone, and the broker has started again: it holds producers by its own mode.
        ("observe", 0, "enforce", False),
        ("observe", 0, None, False),
        (None, None, "observe", True),
        (None, None, None, False),
    ],
)
def test_the_plug_in_knows_best_whether_it_only_observes(
    decided: str | None, lease_seconds_left: float | None, applied: str | None, expected: bool
) -> None:
    local = {
        "decision": decided and {"mode": decided},
        "lease_seconds_left": lease_seconds_left,
        "applied": applied and {"mode": applied},
    }
    assert observes(local) is expected


def test_a_broker_that_was_decommissioned_is_not_there() -> None:
    assert [broker["broker_id"] for broker in troubled()["brokers"]] == [1, 2, 3, 4]


@pytest.mark.parametrize("document", [troubled(), crowded(), broken_glass(), scoped()])
def test_the_document_is_what_its_schema_says(document: dict[str, Any]) -> None:
    assert complaints("status", json.loads(json.dumps(document))) == []


def test_the_schema_refuses_what_is_no_status() -> None:
    for key in troubled():
        document = {name: value for name, value in troubled().items() if name != key}
        assert complaints("status", document), key
    broken = troubled()
    broken["brokers"][0]["volumes"][0]["consumed_bytes"] = "much"
    assert complaints("status", broken)


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("lines", [12, 24, 60])
@pytest.mark.parametrize("looks", [Looks(), Looks(offset=10**6), Looks(show_keys=True, frozen=True)])
def test_a_watched_picture_fills_the_screen_and_no_more(columns: int, lines: int, looks: Looks) -> None:
    console = console_of(columns, lines)
    picture, last = watch_view(crowded(), console, looks)
    text = printed(console, picture)
    flat = " ".join(text.split())
    assert len(text.splitlines()) <= lines
    assert max(map(len, text.splitlines())) <= columns
    assert 0 < last < 90
    assert text.startswith("kquota  30 brokers, 90 volumes")
    assert "of 90 lines" in text
    if looks.offset:
        assert "to 90 of 90 lines" in text
    if looks.show_keys:
        assert "frozen at" in text
        assert KEYS[0][1] in flat
        assert lines == 12 or all(what in flat for _, what in KEYS)


def test_rows_are_sorted_as_asked() -> None:
    def first(order: Order) -> tuple[int, str]:
        row = status_rows(crowded(), order)[0]
        assert row.volume is not None
        return row.broker["broker_id"], row.volume["volume"]

    assert first(Order.BROKER) == (1, "/dev/sda1")
    assert first(Order.HEADROOM) == (29, "/dev/sdc1")
    assert first(Order.TIME) == (30, "/dev/sda1")
    assert first(Order.FILL) == (30, "/dev/sda1")
    assert Order.FILL.next() is Order.BROKER


def test_only_what_is_over_a_limit() -> None:
    rows = status_rows(crowded(), troubled_only=True)
    assert [(row.broker["broker_id"], row.decides) for row in rows] == [(29, True)]
    assert rows[0].names_broker


def test_a_broker_is_named_in_its_first_row() -> None:
    named = [row.names_broker for row in status_rows(crowded(2))]
    assert named == [True, False, False, True, False, False]
    assert all(row.names_broker for row in status_rows(crowded(2), Order.FILL))


def test_a_thousand_brokers_are_shown_sooner_than_a_table_of_rich_s_is() -> None:
    document = crowded(1000)

    def seconds(draw: Callable[[], object]) -> float:
        begun = time.process_time()
        draw()
        return time.process_time() - begun

    def table_of_rich() -> None:
        table = Table(box=None)
        for column in range(9):
            table.add_column(str(column), width=9, no_wrap=True)
        for _ in range(3000):
            table.add_row(*(["/dev/sda1"] * 9))
        console_of(100).print(table)

    def ours() -> None:
        text = printed(console_of(100), status_view(document, 100))
        assert text.count("/dev/sd") > 3000

    assert seconds(ours) < seconds(table_of_rich) / 1.5


@pytest.mark.parametrize(
    ("signed", "line"),
    [
        ([True, True], "signing: required, every report is signed"),
        ([True, None], "signing: required, every report is signed"),
        ([True, False], "signing: required; not signed at broker 2"),
        ([False, False], "signing: required; not signed at brokers 1, 2"),
    ],
)
def test_brokers_whose_last_report_is_not_signed_are_named(signed: list[bool | None], line: str) -> None:
    document = troubled()
    document["brokers"] = document["brokers"][:2]
    for broker, is_signed in zip(document["brokers"], signed, strict=True):
        broker |= {"active": True, "signed": is_signed}
    of_none = printed(console_of(80), status_view(document, 80))
    assert say("signing-off") in of_none
    document["signing"] = "required"
    assert line in printed(console_of(80), status_view(document, 80)).splitlines()
    document["brokers"][1] |= {"active": False, "signed": False}
    assert "not signed at broker 2" not in printed(console_of(80), status_view(document, 80))
