"""Options that make room, in words and as JSON."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from kquota.core.relief import Option, Step, StepKind
from kquota.display.relief_view import option_lines, options_document

NOW = datetime(2026, 11, 25, 10, 0, tzinfo=UTC)
MOVE = Step(
    *(StepKind.LOGDIR_MOVE, "visits-3", 25_000_000_000, round(NOW.timestamp() * 1000) + 560_000, "log_dirs"),
    source="/data/1",
    destination="/data/2",
)


def test_a_move_says_where_to_and_that_nothing_is_lost() -> None:
    assert list(option_lines(1, Option((MOVE,), enough=True), NOW, groups_known=False)) == [
        "1. frees 25.0G by 2026-11-25T10:09:20Z (9 min 20 s), enough",
        "   move partition visits-3 from /data/1 to /data/2",
        "   loses nothing: its records stay on this broker",
    ]
    to_broker = replace(MOVE, kind=StepKind.REPLICA_MOVE, source="1,2", destination="3,2")
    assert list(option_lines(1, Option((to_broker,), enough=True), NOW, groups_known=False))[1:] == [
        "   move partition visits-3 from brokers 1,2 to 3,2",
        "   loses nothing: its records are on as many brokers and racks as before",
    ]
    (document,) = options_document([Option((MOVE,), enough=True)], groups_known=True)
    (step,) = document["steps"]
    assert (step["kind"], step["target"], step["setting"]) == ("logdir-move", "visits-3", "log_dirs")
    assert (step["from"], step["to"]) == ("/data/1", "/data/2")
