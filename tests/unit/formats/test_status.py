"""The status document, and a decision read back from its document."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given

from kquota.formats.decision_reading import MalformedDecision, read_decision_document
from kquota.formats.records import read_event
from kquota.formats.signature_headers import SigningMode
from kquota.formats.status import status_document
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import Scope, decision_document
from kquota.policy.events import Hold, HoldAction, OrderTerms
from kquota.policy.view import ClusterView
from tests.unit.policy.clusters import bounded, cases, decide_case, view_of
from tests.unit.policy.golden import Sample, each, sample, samples
from tests.unit.policy.oracle import Case
from tests.unit.policy.situations import GB, NOW, fold, free, limit, order, raw, usage
from tests.unit.wording import say, wording

HOLD = {
    "action": "pause",
    "until": "2026-11-20T10:20:00Z",
    "reason": "disks are \x1b swapped",
    "actor": "ada\n",
}


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


@pytest.mark.parametrize(("signing", "expected"), [("off", [None, None]), ("accept", [True, False])])
def test_whose_report_is_signed_is_shown_where_somebody_looks(
    signing: str, expected: list[bool | None]
) -> None:
    view, situation = fold(("1", usage(free(15))), ("2", usage(free(15)))), Situation(frozenset({1, 2}))
    view.fold(read_event("1", raw(usage(free(15))), None, "agent/1"), NOW)
    decision, margin = decide(view, situation, PolicySettings(), NOW), Fraction(1, 10)
    mode = SigningMode(signing)
    status: Any = status_document(view, situation, decision, NOW, release_margin=margin, signing=mode)
    assert status["signing"] == signing
    assert [broker["signed"] for broker in status["brokers"]] == expected


def test_the_topics_at_stake_are_shown_with_their_factors() -> None:
    volumes = (free(9, Topics=["a"], TopicsComplete=True), free(15, "v", Topics=["b"], TopicsComplete=True))
    view, situation = fold(("1", usage(*volumes)), ("2", usage(free(19)))), Situation(frozenset({1, 2}))
    decision = decide(view, situation, PolicySettings(scope=Scope.VOLUME), NOW)
    status: Any = status_document(
        view, situation, decision, NOW, release_margin=Fraction(1, 10), cluster_topics=4212
    )
    assert status["sentence"].startswith("PAUSE for 1 of 4,212 ")
    assert status["cluster_topics"] == 4212
    assert (status["scope"], status["topics"], status["other_topics_factor"]) == (
        "topics",
        {"a": 0.0, "b": 0.5},
        0.9,
    )
    assert [volume["topics"] for volume in status["brokers"][0]["volumes"]] == [["a"], ["b"]]


def test_the_whole_document() -> None:
    volume = free(
        15,
        VolumeId="fs-1",
        LogDirs=["/data/1"],
        FillBytesPerSecond=3 * 10**6,
        Latched="HARD",
        Role="metadata",
    )
    view = fold(
        ("1", usage(volume, age_seconds=1.5)),
        ("7", usage(free(50))),
        ("9", None),
        ("maintenance/7", order(30)),
        cluster_id="C",
    )
    situation = Situation(frozenset({1, 2}), joining_brokers=frozenset({2}))
    decision = decide(view, situation, PolicySettings(), NOW)
    document = status_document(view, situation, decision, NOW, release_margin=Fraction(1, 10), cluster_id="C")
    brokers = document.pop("brokers")
    assert document == {
        "schema_version": 1,
        "at": "2026-11-20T10:15:30.123Z",
        "cluster_id": "C",
        "sentence": f"OPEN: {say('calm')}",
        "what_ends_it": say("nothing-to-end"),
        "state": "OPEN",
        "factor": 1.0,
        "fallback": False,
        "hold": None,
        "reasons": [],
        "undetermined": [],
        "scope": "cluster",
        "topics": None,
        "other_topics_factor": None,
        "cluster_topics": None,
        "signing": "off",
        "orders": [
            {
                "order": "maintenance",
                "broker_id": 7,
                "action": None,
                "until": "2026-11-20T10:16:00.123Z",
                "reason": "a test",
                "actor": "alice",
            }
        ],
        "warnings": [],
    }
    nothing_known = {
        "joining": False,
        "undetermined": None,
        "covered": None,
        "quarantine": None,
        "maintenance": None,
        "snapshot_at": None,
        "age_seconds": None,
        "applied": None,
        "mode": None,
        "signed": None,
        "counts": True,
        "volumes": [],
    }
    metadata = {
        "volume": "/dev/sda1",
        "volume_id": "fs-1",
        "log_dirs": ["/data/1"],
        "role": "metadata",
        "status": "ok",
        "latched": True,
        "capacity_bytes": 100 * GB,
        "consumed_bytes": 85 * GB,
        "soft_bytes": 80 * GB,
        "hard_bytes": 90 * GB,
        "fill_bytes_per_second": 3 * 10**6,
        "seconds_to_soft": 0.0,
        "seconds_to_hard": 1666.7,
        "headroom": 0.0,
        "inodes": None,
        "topics": None,
        "limits_problem": None,
    }
    data = metadata | {
        "volume_id": None,
        "log_dirs": [],
        "role": "data",
        "latched": False,
        "consumed_bytes": 50 * GB,
        "fill_bytes_per_second": None,
        "seconds_to_soft": None,
        "seconds_to_hard": None,
        "headroom": 1.0,
    }
    assert brokers == [
        nothing_known
        | {
            "broker_id": 1,
            "active": True,
            "snapshot_at": "2026-11-20T10:15:28.623Z",
            "age_seconds": 1.5,
            "volumes": [metadata],
        },
        nothing_known | {"broker_id": 2, "active": True, "joining": True},
        nothing_known
        | {
            "broker_id": 7,
            "active": False,
            "maintenance": {"until": "2026-11-20T10:16:00.123Z", "reason": "a test", "actor": "alice"},
            "snapshot_at": "2026-11-20T10:15:29.123Z",
            "age_seconds": 1.0,
            "volumes": [data],
        },
    ]


@pytest.mark.accepts("G11")
def test_a_hold_that_is_open_over_a_hard_limit_is_a_warning_of_its_own() -> None:
    hold = ("hold", order(60, Action="open"))
    view = fold(("1", usage(free(5), free(9, "/dev/sdb1"), free(15, "/dev/sdc1"))), hold)
    status: Any = documented(view, Situation(frozenset({1})))
    assert status["state"] == "OPEN"
    assert status["orders"][0] | {"until": ""} == {
        "order": "hold",
        "broker_id": None,
        "action": "open",
        "until": "",
        "reason": "a test",
        "actor": "alice",
    }
    assert status["warnings"] == [say("held-open-and-one-more", volume="/dev/sda1", broker=1)]
    pause = ("hold", order(60, Action="pause"))
    for records in ([("1", usage(free(15))), hold], [("1", usage(free(5))), pause], [("1", usage(free(5)))]):
        status = documented(fold(*records), Situation(frozenset({1})))
        assert status["warnings"] == []


@pytest.mark.accepts("G25")
def test_reports_that_do_not_count_are_named_up_to_a_number() -> None:
    invented = [(str(1000 + number), usage(free(1))) for number in range(7)]
    view = fold(("1", usage(free(50))), ("2", usage(free(50))), *invented)
    status: Any = documented(view, Situation(frozenset({1}), known_brokers=frozenset({2})))
    assert status["state"] == "OPEN"
    assert [one["broker_id"] for one in status["brokers"] if one["counts"]] == [1, 2]
    assert len(status["warnings"]) == 6
    assert status["warnings"][0] == (say("never-listed", broker=1000))
    assert status["warnings"][5] == say("more-never-listed", count=2)


def test_of_a_cluster_whose_brokers_are_not_listed_those_with_a_record_are_shown() -> None:
    status = documented(fold(("3", usage(free(50)))), Situation(None))
    (broker,) = json.loads(json.dumps(status))["brokers"]
    assert (broker["broker_id"], broker["active"]) == (3, None)


def test_a_broker_whose_state_is_not_known_is_shown_with_the_cause() -> None:
    status = documented(fold(("1", b"garbage")), Situation(frozenset({1, 2})))
    brokers = json.loads(json.dumps(status))["brokers"]
    assert [(broker["broker_id"], broker["undetermined"]) for broker in brokers] == [
        (1, "malformed"),
        (2, "missing"),
    ]


def test_limits_that_can_not_be_judged_are_shown_with_the_problem() -> None:
    (volume,) = broker_of(HardLimit=limit("MinFreeBytes", 20 * GB))["volumes"]
    assert (volume["soft_bytes"], volume["headroom"]) == (None, None)
    assert volume["limits_problem"].startswith("soft limit MinFreeBytes")


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


@each("decision", "valid")
def test_a_valid_decision_file_reads_back(golden: Sample) -> None:
    document = golden.document
    assert read_decision_document(document).state.value == document["state"]


def test_a_hold_reads_back_fit_to_print() -> None:
    decision = read_decision_document({**sample("decision", "open"), "hold": HOLD})
    until = datetime(2026, 11, 20, 10, 20, tzinfo=UTC)
    assert decision.hold == Hold(HoldAction.PAUSE, OrderTerms(until, "disks are \ufffd swapped", "ada\ufffd"))


UNDETERMINED = {"broker_id": 1, "cause": "stale"}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("state", {"state": "SHUT"}),
        ("time", {"decided_at": "noon"}),
        ("cause", {"undetermined": [UNDETERMINED | {"cause": "x"}]}),
        ("factor", {"factor": 2}),
        ("factor-of-another-state", {"factor": 0.5}),
        ("hold", {"hold": []}),
        ("hold-end", {"hold": HOLD | {"until": 7}}),
        ("hold-action", {"hold": HOLD | {"action": "stop"}}),
        ("hold-reason", {"hold": HOLD | {"reason": None}}),
        ("reasons", {"reasons": {}}),
        ("reasons", {"reasons": None}),
        ("undetermined", {"undetermined": [7]}),
        ("broker", {"undetermined": [UNDETERMINED | {"broker_id": True}]}),
        ("broker", {"undetermined": [UNDETERMINED | {"broker_id": "1"}]}),
        ("topics", {"scope": "topics"}),
        ("topics", {"scope": "topics", "topics": ["a"]}),
        ("topic-factor", {"scope": "topics", "topics": {"a": 2}, "other_topics_factor": 1}),
        ("other-topics", {"scope": "topics", "topics": {"a": 0}, "other_topics_factor": "1"}),
    ],
)
def test_a_decision_that_can_t_be_read_says_which_key_and_value(name: str, change: dict[str, Any]) -> None:
    with pytest.raises(MalformedDecision) as refused:
        read_decision_document({**sample("decision", "open"), **change})
    assert str(refused.value) == wording("refusals")["decision"][name]


@pytest.mark.parametrize("key", ["reasons", "undetermined"])
def test_a_decision_without_its_lists_can_t_be_read(key: str) -> None:
    document = sample("decision", "open")
    del document[key]
    with pytest.raises(MalformedDecision, match=f"^{key} "):
        read_decision_document(document)


@pytest.mark.parametrize(
    "golden",
    [
        one
        for one in samples("decision", "invalid")
        if one.name.startswith(("state-", "factor-", "pause-", "throttle-")) and one.name != "factor-nan"
    ],
    ids=lambda one: one.name,
)
def test_a_decision_that_contradicts_itself_is_refused(golden: Sample) -> None:
    with pytest.raises(MalformedDecision):
        read_decision_document(golden.document)
