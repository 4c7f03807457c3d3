"""The demo reads the very files that agents and plug-ins write."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from kquota.core.decision import (
    Cause,
    Decision,
    Mode,
    Reason,
    Undetermined,
    UndeterminedCause,
    decision_document,
)
from kquota.core.sentences import decision_sentence
from kquota.demo.sight import read_decision
from kquota.write.decision_file import DecisionFile


def test_a_written_decision_is_read_with_the_same_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    decisions = [
        Decision(
            Fraction(42, 100),
            (Reason(Cause.SOFT, Fraction(42, 100), broker_id=3, volume="/dev/loop5"),),
            (Undetermined(2, UndeterminedCause.STALE),),
            False,
            None,
            datetime(2026, 11, 20, 10, 15, 30, tzinfo=UTC),
        ),
        Decision(
            Fraction(0),
            (Reason(Cause.FALLBACK, Fraction(0), broker_id=None, volume=None),),
            (Undetermined(None, UndeterminedCause.NOT_READ),),
            True,
            None,
            datetime(2026, 11, 20, 10, 15, 30, tzinfo=UTC),
        ),
        Decision(Fraction(1), (), (), False, None, datetime(2026, 11, 20, 10, 15, 30, tzinfo=UTC)),
    ]
    path = tmp_path / "decision.json"
    for decision in decisions:
        DecisionFile(path).write(decision_document(decision, broker_id=1, sequence=1, mode=Mode.ENFORCE))

        assert read_decision(path) == decision
        assert decision_sentence(decision) == decision_sentence(read_decision(path) or decisions[-1])


def test_no_file_or_garbage_is_no_decision(tmp_path: Path) -> None:
    path = tmp_path / "decision.json"
    assert read_decision(path) is None
    for garbage in ("{", "{}", '{"state": "PAUSE", "factor": 1}'):
        path.write_text(garbage)
        assert read_decision(path) is None
