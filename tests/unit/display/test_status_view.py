"""A status document on terminals of different widths."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from kquota.core.policy import PolicySettings, Situation, decide
from kquota.core.status import status_document
from kquota.display.status_view import age_text, size_text, status_view, usage_bar
from tests.unit.core.situations import GB, NOW, STALENESS, fold, free, order, usage

LONG_NAME = "/dev/mapper/" + "v" * 60


def document() -> dict[str, Any]:
    """Broker 1 is half way, 2 full and inactive, 3 in quarantine, 4 has never reported; 5 is gone."""
    view = fold(
        ("1", usage(free(15, FillBytesPerSecond=10_000_000), free(0, LONG_NAME, Status="offline"))),
        ("2", usage(free(5, Latched="HARD"), age_seconds=100_000)),
        ("3", usage(free(50), Applied={"State": "THROTTLE", "Factor": 0.25})),
        ("5", None),
        ("quarantine/3", order()),
    )
    situation = Situation(frozenset({1, 3, 4}))
    decision = decide(view, situation, PolicySettings(staleness=STALENESS), NOW)
    found = status_document(view, situation, decision, NOW, cluster_id="c")
    return found | {"notes": ["broker 1 (this host): fine"], "problems": ["a broker can't be reached"]}


def shown(columns: int, *, ascii_only: bool = False) -> str:
    console = Console(file=io.StringIO(), width=columns, highlight=False)
    console.print(status_view(document(), columns, ascii_only=ascii_only))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("columns", [80, 100, 135, 136, 200])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_it_fits_and_says_what_matters(columns: int, ascii_only: bool) -> None:
    text = shown(columns, ascii_only=ascii_only)
    assert max(map(len, text.splitlines())) <= columns
    flat = " ".join(text.split())
    assert flat.startswith("PAUSE: volume /dev/sda1 of broker 2 is over its hard limit")
    for part in (
        "inactive",
        "quarantine",
        "missing",
        "no report",
        "unverified",
        "50%",
        "THROTTLE 0.25",
        "28h",
        "8m",  # 5 GB to the hard limit at 10 MB/s
    ):
        assert part in flat, part
    assert "broker 1 (this host): fine" in flat
    assert "a broker can't be reached" in flat
    assert ("#" in text) == ascii_only
    assert text.isascii() == ascii_only
    assert ("SOFT" in text) == ("+10.0M" in text) == (columns >= 136)


def test_a_broker_that_was_decommissioned_is_not_there() -> None:
    assert [broker["broker_id"] for broker in document()["brokers"]] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0"), (999, "999"), (999.6, "1.00K"), (12_345_678, "12.3M"), (1_500_000_000_000, "1.50T")],
)
def test_sizes_in_five_characters(size: float, text: str) -> None:
    assert size_text(size) == text


def test_no_size_takes_more_than_five_characters() -> None:
    for exponent in range(19):
        for digits in (1, 1.5, 9.99, 9.995, 9.999):
            assert len(size_text(digits * 10**exponent)) <= 5


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0.44, "0.4s"), (12, "12s"), (119, "119s"), (180, "3m"), (7200, "2h"), (432_000, "5d")],
)
def test_ages_in_five_characters(seconds: float | None, text: str) -> None:
    assert age_text(seconds) == text


def test_the_bar_marks_both_limits() -> None:
    volume = {
        "capacity_bytes": 100 * GB,
        "consumed_bytes": 50 * GB,
        "soft_bytes": 80 * GB,
        "hard_bytes": 90 * GB,
        "headroom": 1.0,
    }
    assert usage_bar(volume, 10, ascii_only=True).plain == "#####...:|"
    assert usage_bar(volume | {"consumed_bytes": 100 * GB}, 10, ascii_only=True).plain == "########:|"
    assert usage_bar(volume | {"capacity_bytes": 0}, 10).plain == "?" * 10
