"""The status document, and a decision read back from its document."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from kquota.core.decision import decision_document
from kquota.core.decision_reading import MalformedDecision, read_decision_document
from kquota.core.policy import PolicySettings, Situation, decide
from kquota.core.status import status_document
from kquota.core.view import ClusterView
from tests.unit.core.clusters import bounded, cases, decide_case, view_of
from tests.unit.core.golden import samples
from tests.unit.core.oracle import Case
from tests.unit.core.situations import GB, NOW, fold, free, limit, order, usage


def documented(view: ClusterView, situation: Situation) -> dict[str, object]:
    decision = decide(view, situation, PolicySettings(), NOW)
    return status_document(view, situation, decision, NOW, release_margin=Fraction(1, 10))


def broker_of(**fields: Any) -> dict[str, Any]:
    view = fold(("1", usage(free(15), **fields)), ("quarantine/1", order()))
    situation = Situation(frozenset({1}))
    status = documented(view, situation)
    (broker,) = json.loads(json.dumps(status))["brokers"]
    assert isinstance(broker, dict)
    return broker


def test_a_volume_is_shown_with_its_limits_in_bytes() -> None:
    broker = broker_of()
    assert (broker["broker_id"], broker["active"], broker["age_seconds"]) == (1, True, 1.0)
    assert broker["quarantine"]["actor"] == "alice"
    (volume,) = broker["volumes"]
    assert (volume["soft_bytes"], volume["hard_bytes"], volume["headroom"]) == (80 * GB, 90 * GB, 0.5)


def test_limits_that_can_not_be_judged_are_shown_with_the_problem() -> None:
    (volume,) = broker_of(HardLimit=limit("MinFreeBytes", 20 * GB))["volumes"]
    assert (volume["soft_bytes"], volume["headroom"]) == (None, None)
    assert "must be more than the hard limit's level" in volume["limits_problem"]


@pytest.mark.accepts("F6", "F26")
def test_what_a_stranger_says_to_apply_is_shown_fit_to_print() -> None:
    applied = {
        "State": "OPEN\x1b[2J",
        "Factor": 0.25,
        "Sequence": 41,
        "Mechanism": None,
        "Fresh": True,
        "Nested": {"a": [1]},
        "Huge": 10**300,
    }
    assert broker_of(Applied=applied)["applied"] == {
        "State": "OPEN\ufffd[2J",
        "Factor": 0.25,
        "Sequence": 41,
        "Mechanism": None,
        "Fresh": True,
    }
    assert len(broker_of(Applied={str(i): i for i in range(1000)})["applied"]) == 32


@pytest.mark.accepts("G22", "F26")
@pytest.mark.parametrize(
    ("applied", "mode"),
    [
        ({"State": "PAUSE", "Mode": "observe"}, "observe"),
        ({"State": "PAUSE", "Mode": "enforce"}, "enforce"),
        ({"State": "PAUSE"}, None),  # of the version before
        ({"State": "PAUSE", "Mode": "audit"}, None),
        ({"State": "PAUSE", "Mode": True}, None),
        ([], None),
    ],
)
def test_the_mode_in_force_is_shown_where_it_is_known(applied: object, mode: str | None) -> None:
    assert broker_of(Applied=applied)["mode"] == mode


@given(case=cases())
@bounded(60)
def test_every_status_is_json(case: Case) -> None:
    view = view_of(case)
    situation = Situation(case.active, case.joining, case.self_id)
    status = documented(view, situation)
    assert json.loads(json.dumps(status, allow_nan=False))["state"] in ("OPEN", "THROTTLE", "PAUSE")


@given(case=cases())
@bounded(60)
def test_a_decision_reads_back_as_it_was_written(case: Case) -> None:
    document = decision_document(decide_case(case))
    assert decision_document(read_decision_document(json.loads(json.dumps(document)))) == document


@pytest.mark.parametrize("path", samples("decision", "valid"), ids=lambda path: path.stem)
def test_a_valid_decision_file_reads_back(path: Path) -> None:
    document = json.loads(path.read_text("utf-8"))
    assert read_decision_document(document).state.value == document["state"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"state": "SHUT"}, "state is SHUT, none of OPEN, THROTTLE, PAUSE"),
        ({"decided_at": "noon"}, "decided_at: 'noon' is not an ISO 8601 time in UTC"),
        ({"undetermined": [{"broker_id": 1, "cause": "x"}]}, "cause is x, none of missing, stale, "),
        ({"factor": 2}, "factor is no number between 0 and 1"),
    ],
)
def test_a_decision_that_can_t_be_read_says_which_key_and_value(
    change: dict[str, Any], sentence: str
) -> None:
    (path,) = [p for p in samples("decision", "valid") if p.stem == "open"]
    with pytest.raises(MalformedDecision, match=f"^{sentence}"):
        read_decision_document({**json.loads(path.read_text("utf-8")), **change})


@pytest.mark.parametrize(
    "path",
    [
        p
        for p in samples("decision", "invalid")
        if p.stem.startswith(("state-", "factor-", "pause-", "throttle-")) and p.stem != "factor-nan"
    ],
    ids=lambda path: path.stem,
)
def test_a_decision_that_contradicts_itself_is_refused(path: Path) -> None:
    with pytest.raises(MalformedDecision):
        read_decision_document(json.loads(path.read_text("utf-8")))
