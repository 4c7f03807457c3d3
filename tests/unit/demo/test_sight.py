"""The demo reads the very files that agents and plug-ins write."""

from __future__ import annotations

import json
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
from kquota.host.boot_clock import BootClock
from kquota.write.decision_file import DecisionFile
from testbed.demo.sight import read_applied, read_decision
from testbed.loopback.plug_in import BrokerFiles
from tests.unit.repository.tree import REPOSITORY


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


def test_what_is_applied_is_judged_by_the_boot_that_its_host_has(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    boot_id = tmp_path / "boot_id"
    boot_id.write_text("0b1c2d3e-0000-4000-8000-000000000001\n")
    clock = BootClock(boot_id)
    of_now = {"boot_id": clock.boot_id, "written_uptime_ms": clock.now().uptime_ms, "broker_id": 3}
    sample = json.loads((REPOSITORY / "schemas/samples/applied/valid/pause.json").read_text())
    applied = tmp_path / "applied.json"
    applied.write_text(json.dumps(sample | of_now))

    seen = read_applied(3, BrokerFiles(tmp_path / "decision.json", applied, clock))

    assert seen is not None
    assert seen.broker_id == 3
    assert read_applied(3, BrokerFiles(tmp_path / "decision.json", applied)) is None
    assert read_applied(1, BrokerFiles(tmp_path / "decision.json", applied, clock)) is None
