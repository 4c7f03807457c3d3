"""Options that make room, in words and as JSON."""

from __future__ import annotations

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
    (document,) = options_document([Option((MOVE,), enough=True)], groups_known=True)
    (step,) = document["steps"]
    assert (step["kind"], step["target"], step["setting"]) == ("logdir-move", "visits-3", "log_dirs")
    assert (step["from"], step["to"]) == ("/data/1", "/data/2")
