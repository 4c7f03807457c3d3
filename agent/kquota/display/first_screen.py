"""The first screen of a large cluster: what decides and what is wrong, and a line about the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from itertools import groupby, takewhile
from typing import Any

from kquota.display.status_table import Row, applied_state, is_troubled, named_in_first_row

FEW_BROKERS = 20
"""A cluster of up to this many brokers is always shown whole; without a screen, of others this many are."""


class _Rank(IntEnum):
    """Why a broker is shown, the most important first."""

    THIS_HOST = 0
    LIMIT = 1
    UNKNOWN = 2
    REMARK = 3
    DIFFERS = 4
    FINE = 5


_REST = {
    _Rank.LIMIT: "over a limit",
    _Rank.UNKNOWN: "silent or not known",
    _Rank.REMARK: "with a remark",
    _Rank.DIFFERS: "not known to apply the decision",
}


def first_rows(
    document: Mapping[str, Any], rows: Iterable[Row], decided: str | None, lines: int | None
) -> tuple[list[Row], list[str]]:
    """Return the rows that matter most, as many as fit, and sentences about all others.

    Args:
        document: The status document.
        rows: Its rows, those of a broker together.
        decided: The state that brokers have to apply, None where they need not.
        lines: How many rows fit; None for those of the first `FEW_BROKERS` brokers.
    """
    own = (document.get("local") or {}).get("broker_id")
    brokers = [_of_broker(list(group), own, decided) for _, group in groupby(rows, key=_broker_id)]
    shown = sorted((found for found in brokers if found[0] is not _Rank.FINE), key=_importance)
    fit = first_of([row for _, important in shown for row in important], lines)
    visible = Counter(_broker_id(row) for row in fit)
    cut = [
        f"{len(important) - seen} more of broker {_broker_id(important[0])}"
        for _, important in shown
        if 0 < (seen := visible[_broker_id(important[0])]) < len(important)
    ]
    ranks = Counter(rank for rank, important in shown if not visible[_broker_id(important[0])])
    left_out = cut + [f"{_count(ranks[rank])} {what}" for rank, what in _REST.items() if ranks[rank]]
    sentences = [f"not shown: {', '.join(left_out)}"] if left_out else []
    fine = len(brokers) - len(shown)
    if fine:
        sentences.append(f"{_count(fine)} {'is' if fine == 1 else 'are'} OPEN and fresh")
    return list(named_in_first_row(fit)), sentences


def first_of(rows: Sequence[Row], lines: int | None) -> list[Row]:
    """Return the first rows, this many; for None until a broker is one too many."""
    if lines is not None:
        return list(rows[:lines])
    brokers = list(dict.fromkeys(_broker_id(row) for row in rows))
    if len(brokers) <= FEW_BROKERS:
        return list(rows)
    return list(takewhile(lambda row: _broker_id(row) != brokers[FEW_BROKERS], rows))


def _of_broker(rows: list[Row], own: int | None, decided: str | None) -> tuple[_Rank, list[Row]]:
    """Return why a broker is shown, and which of its rows: what is wrong, or else its fullest volume."""
    broker = rows[0].broker
    troubled = sorted(
        (row for row in rows if is_troubled(row)), key=lambda row: (not row.decides, _left(row))
    )
    important = troubled or [min(rows, key=_left)]
    if broker["broker_id"] == own:
        return _Rank.THIS_HOST, important
    if any(row.decides or _left(row) < 1 for row in troubled):
        return _Rank.LIMIT, important
    if broker["undetermined"] or broker["covered"] or any(row.volume for row in troubled):
        return _Rank.UNKNOWN, important
    if troubled:
        return _Rank.REMARK, important
    if decided is not None and (applied_state(broker)[0] != decided or broker["mode"] == "observe"):
        return _Rank.DIFFERS, important
    return _Rank.FINE, important


def _importance(found: tuple[_Rank, list[Row]]) -> tuple[_Rank, bool, float, int]:
    rank, rows = found
    return rank, not any(row.decides for row in rows), min(map(_left, rows)), _broker_id(rows[0])


def _broker_id(row: Row) -> int:
    return int(row.broker["broker_id"])


def _left(row: Row) -> float:
    """Return the row's headroom; a row without one comes after all others."""
    headroom = None if row.volume is None else row.volume["headroom"]
    return float("inf") if headroom is None else float(headroom)


def _count(brokers: int) -> str:
    return f"{brokers} broker{'' if brokers == 1 else 's'}"
