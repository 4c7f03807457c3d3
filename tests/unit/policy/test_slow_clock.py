"""A broker whose clock is behind: its reports arrive, and are stale by their own time."""

from __future__ import annotations

import json
from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kquota.formats.decision_reading import read_decision_document
from kquota.formats.replays import read_events
from kquota.formats.sentences import decision_sentence, what_ends_it
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import Decision, FallbackAction, decision_document
from kquota.policy.view import ClusterView
from tests.unit.policy.situations import NOW, STALENESS, TOLERANCE, causes, free, usage
from tests.unit.wording import say

_NOW_MS = int(NOW.timestamp() * 1000)


def decided(
    age_seconds: float, appended_seconds_ago: float | None, fallback: str = "pause", gb: int = 50
) -> Decision:
    """Decide on a record that is this old by its own time, and was stored this long ago."""
    line: dict[str, object] = {"key": "1", "value": usage(free(gb), age_seconds=age_seconds)}
    if appended_seconds_ago is not None:
        line["timestamp_ms"] = _NOW_MS - round(appended_seconds_ago * 1000)
    view = ClusterView(TOLERANCE)
    view.fold_all(read_events([json.dumps(line)]), NOW)
    settings = PolicySettings(fallback_action=FallbackAction(fallback), staleness=STALENESS)
    return decide(view, Situation(frozenset({1})), settings, NOW)


def test_a_report_that_arrives_with_an_old_time_is_of_a_slow_clock() -> None:
    decision = decided(age_seconds=76, appended_seconds_ago=1)
    assert causes(decision) == [(1, "clock")]
    assert decision.undetermined[0].clock_behind_seconds == 75
    assert decision_sentence(decision) == (
        f"PAUSE: fallback, because {say('unknown-clock', broker=1, seconds=75)}"
    )
    end = what_ends_it(decision, [], Fraction(0))
    assert "time synchronization" in end
    assert "decommission" not in end


@pytest.mark.parametrize(
    ("age", "appended_ago", "cause"),
    [
        (60, 1, None),  # behind, and not yet stale
        (60.001, 30, "clock"),
        (60.001, 30.001, "stale"),  # several reports have not come: the agent is silent, whatever its clock
        (90, 85, "stale"),
        (90, None, "stale"),
    ],
)
def test_only_an_agent_that_reports_has_a_slow_clock(
    age: float, appended_ago: float | None, cause: str | None
) -> None:
    assert causes(decided(age, appended_ago)) == ([] if cause is None else [(1, cause)])


@given(
    age=st.floats(0, 200),
    appended_ago=st.floats(-100, 200),
    fallback=st.sampled_from(["pause", "open"]),
    gb=st.sampled_from([5, 15, 50]),
)
def test_when_a_report_was_stored_changes_no_verdict(
    age: float, appended_ago: float, fallback: str, gb: int
) -> None:
    assume(appended_ago - age < 59.9)  # otherwise its clock was ahead: tests/unit/policy/test_fast_clock.py
    known, unknown = decided(age, appended_ago, fallback, gb), decided(age, None, fallback, gb)
    assert (known.headroom, known.reasons, known.fallback) == (
        unknown.headroom,
        unknown.reasons,
        unknown.fallback,
    )
    assert [entry.broker_id for entry in known.undetermined] == [
        entry.broker_id for entry in unknown.undetermined
    ]


def test_how_far_it_is_behind_is_in_the_document_and_makes_no_other_entry() -> None:
    decision = decided(76, 1)
    document = decision_document(decision)
    assert document["undetermined"] == [{"broker_id": 1, "cause": "clock", "clock_behind_seconds": 75}]
    assert read_decision_document(document).undetermined[0].clock_behind_seconds == 75
    assert decided(78, 1).undetermined == decision.undetermined


def test_a_timestamp_that_is_none_is_no_time() -> None:
    line = json.dumps({"key": "1", "value": usage(free(50)), "timestamp_ms": 10**30})
    for text in (line, line.replace(str(10**30), "-1"), line.replace(str(10**30), '"now"')):
        [event] = read_events([text])
        assert event.record.appended_at is None  # type: ignore[union-attr]
    [event] = read_events([line.replace(str(10**30), str(_NOW_MS))])
    assert abs(event.record.appended_at - NOW) < timedelta(milliseconds=1)  # type: ignore[union-attr]


@pytest.mark.parametrize(("written", "read"), [(75, 75), ("75", None), (True, None), (7.5, None)])
def test_only_a_whole_number_of_seconds_reads_back(written: object, read: int | None) -> None:
    document = decision_document(decided(75, 0))
    (entry,) = document["undetermined"]
    changed = document | {"undetermined": [entry | {"clock_behind_seconds": written}]}
    assert [one.clock_behind_seconds for one in read_decision_document(changed).undetermined] == [read]
