"""The table of forecasts for people, as narrow terminals show it."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from kquota_pipeline.cli.forecasts import COLUMNS, for_people, print_forecast

HOUR = int(datetime(2026, 11, 26, 17, tzinfo=UTC).timestamp()) // 3600
CLUSTER = "4L6g3nShT-eMCtK--X86sw"


def row(
    outlook: str, days: float | None = None, *, broker: int = 1003, cluster: str = CLUSTER
) -> dict[str, Any]:
    known = outlook != "too little history"
    return {
        "cluster_id": cluster, "broker_id": broker, "volume_name": "/dev/mapper/data-1", "hour": HOUR,
        "capacity_bytes": 8_000, "consumed_bytes": 7_000, "soft_outlook": outlook, "soft_days": days,
        "hard_outlook": "not filling" if known else outlook, "hard_days": None,
        "soft_within_30d": 0.98 if known else None, "hard_within_30d": 0.004 if known else None,
    }  # fmt: skip


def printed(width: int, *rows: dict[str, Any]) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    print_forecast(rows, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().replace("\N{NO-BREAK SPACE}", " ").splitlines()


def test_a_row_has_what_is_used_the_dates_and_the_hour_of_the_last_sample() -> None:
    shown = {
        name: str(text).replace("\N{NO-BREAK SPACE}", " ")
        for name, text in for_people(row("filling", 9.5)).items()
    }
    assert tuple(shown) == COLUMNS
    assert shown["used"] == "87.5 %"
    assert (shown["soft_limit_on"], shown["hard_limit_on"]) == ("6 Dec", "\N{EN DASH}")
    assert (shown["soft_in_30d"], shown["hard_in_30d"]) == ("98 %", "0 %")
    assert shown["last_hour"] == "26 Nov 17h"
    words = {"over the limit": "over", "perhaps filling": "perhaps", "too little history": "unknown"}
    assert {text: for_people(row(text))["soft_limit_on"] for text in words} == words
    assert for_people(row("too little history"))["soft_in_30d"] == "\N{EN DASH}"


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_breaks_headings_between_words_and_figures_nowhere(width: int) -> None:
    lines = printed(
        width,
        row("over the limit", 0.0),
        row("filling", 17.2),
        row("perhaps filling"),
        row("too little history"),
    )
    assert lines[0].strip() == f"Forecast: cluster {CLUSTER}"
    assert max(len(line.rstrip()) for line in lines) <= width
    values = [line.split() for line in lines if "/dev/mapper/data-1" in line]
    assert [own[4] for own in values] == ["over", "13", "perhaps", "unknown"]
    assert [own[-3:] for own in values] == [["26", "Nov", "17h"]] * 4
    heading = " ".join(lines[1 : lines.index(next(line for line in lines if "──" in line))]).split()
    assert set(heading) == {word for name in COLUMNS for word in name.split("_")}


def test_each_cluster_has_a_table_of_its_own() -> None:
    lines = printed(80, row("filling", 2.0, cluster="B"), row("filling", 3.0, cluster="A", broker=7))
    assert [line.strip() for line in lines if "Forecast" in line] == [
        "Forecast: cluster A",
        "Forecast: cluster B",
    ]
    assert [line.split()[0] for line in lines if "/dev/mapper" in line] == ["7", "1003"]
