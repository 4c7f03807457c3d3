"""Keys, and what they do to a watched status."""

from __future__ import annotations

import pytest

from kquota.cli.keyboard import keys_of
from kquota.cli.watch import looks_after
from kquota.display.status_table import Order
from kquota.display.status_view import Looks


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        (b"", []),
        (b"qs ", ["q", "s", " "]),
        (b"\x1b", ["escape"]),
        (b"\x1b[A\x1b[B", ["up", "down"]),
        (b"\x1bOAx", ["up", "x"]),
        (b"\x1b[6~\x1b[5~j", ["page down", "page up", "j"]),
        (b"\x1b[1;5C", []),
        ("ä".encode(), ["ä"]),
    ],
)
def test_what_a_terminal_sends_are_keys(typed: bytes, keys: list[str]) -> None:
    assert keys_of(typed) == keys


def after(*keys: str, looks: Looks | None = None) -> Looks:
    looks = looks or Looks()
    for key in keys:
        looks = looks_after(key, looks, 50, page=10)
    return looks


def test_keys_scroll_within_the_rows() -> None:
    assert after("up").offset == 0
    assert after("down", "j", "page down").offset == 12
    assert after("end").offset == after("G", "down").offset == 50
    assert after("page up", looks=Looks(offset=10**6)).offset == 40
    assert after("end", "home").offset == 0


def test_keys_sort_filter_freeze_and_explain() -> None:
    assert after("s").order is Order.HEADROOM
    assert after("down", "s").offset == 0
    assert after("f").troubled_only
    assert not after("f", "f").troubled_only
    assert after(" ").frozen
    assert after("?").show_keys
    assert after("x", "ä") == Looks()
