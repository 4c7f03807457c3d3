"""The plug-in's report of its state is believed only if it is recent and of this broker."""

import json
import os
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kquota.formats.strict_json import InvalidJson, parse_json
from kquota.guard.applied_state import (
    AppliedState,
    AppliedUnknown,
    Mechanism,
    UnknownCause,
    parse_applied_state,
    read_applied_state,
)
from kquota.guard.applied_verification import verify
from kquota.host.boot_clock import BootMoment
from kquota.host.documents import MalformedDocument
from kquota.policy.decision import Mode, State
from tests.unit.policy.golden import Sample, complaints, each, refused_by_schema, sample

THROTTLE = sample("applied", "throttle")
BOOT_ID = "3c1c3a4e-9f0a-4f6e-8d5b-0f1f0c0d6a11"
WRITTEN_MS = 123_440_510
NOW = BootMoment(BOOT_ID, WRITTEN_MS + 700)


def parsed(text: str) -> AppliedState:
    document = parse_json(text)
    if not isinstance(document, dict):
        raise MalformedDocument("no object")
    return parse_applied_state(document)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "applied.json"
    path.write_text(json.dumps(THROTTLE), "utf-8")
    path.chmod(0o644)
    return path


def unknown(path: Path, now: BootMoment = NOW, **expected: Any) -> AppliedUnknown:
    answer = read_applied_state(path, now, **({"broker_id": 1} | expected))
    assert isinstance(answer, AppliedUnknown), answer
    assert str(path) in answer.reason
    return answer


@each("applied", "valid")
def test_every_valid_sample_is_read(golden: Sample) -> None:
    applied = parsed(golden.text)
    document = golden.document
    assert complaints("applied", document) == []
    assert applied.state.value == document["state"]
    assert applied.factor == document["factor"]
    assert applied.sequence == document["sequence"]
    assert applied.lost == document["lost"]
    assert applied.mechanism.value == document["mechanism"]
    assert [seen.principal for seen in applied.exempt] == [seen["principal"] for seen in document["exempt"]]
    assert applied.errors == {error["kind"]: error["count"] for error in document["errors"]}


@each("applied", "invalid")
def test_every_invalid_sample_is_refused(golden: Sample) -> None:
    assert refused_by_schema("applied", golden.text)
    with pytest.raises(InvalidJson):
        parsed(golden.text)


def test_a_fresh_file_of_this_broker_is_believed(file: Path) -> None:
    applied = read_applied_state(file, NOW, broker_id=1, cluster_id="4L6g3nShT-eMCtK--X86sw")
    assert isinstance(applied, AppliedState)
    assert (applied.state, applied.factor, applied.sequence) == (State.THROTTLE, 0.42, 42)
    assert (applied.mode, applied.mechanism) == (Mode.ENFORCE, Mechanism.GOVERNOR)
    assert applied.age_seconds(NOW) == 0.7


def test_the_agent_need_not_know_its_cluster_yet(file: Path) -> None:
    assert isinstance(read_applied_state(file, NOW, broker_id=1), AppliedState)


def test_what_says_nothing_about_now(file: Path) -> None:
    later = BootMoment(BOOT_ID, WRITTEN_MS + 45_000)
    stale = unknown(file, later)
    assert stale.cause is UnknownCause.STALE
    assert stale.reason.endswith("is 45 s old")
    assert isinstance(read_applied_state(file, later, broker_id=1, max_age_seconds=45), AppliedState)
    assert unknown(file, BootMoment("another", WRITTEN_MS)).cause is UnknownCause.OTHER_BOOT
    assert unknown(file, broker_id=2).cause is UnknownCause.OTHER_BROKER
    assert unknown(file, cluster_id="another").cause is UnknownCause.OTHER_BROKER


def test_what_is_no_such_file(file: Path) -> None:
    assert unknown(file.with_name("none.json")).cause is UnknownCause.MISSING
    assert unknown(file.with_name("none.json")).reason.startswith("there is no ")
    file.chmod(0o666)
    assert unknown(file).cause is UnknownCause.REFUSED
    file.chmod(0o644)
    file.write_text("{")
    assert unknown(file).cause is UnknownCause.MALFORMED
    file.write_text("{}")
    assert unknown(file).cause is UnknownCause.MALFORMED
    file.unlink()
    os.mkfifo(file)
    assert unknown(file).cause is UnknownCause.REFUSED


def test_what_a_usage_record_tells_of_it() -> None:
    document = parse_applied_state(THROTTLE).to_usage_document()
    assert document == {
        "State": "THROTTLE",
        "Factor": 0.42,
        "Sequence": 42,
        "Mechanism": "governor",
        "Mode": "enforce",
        "Scope": "cluster",
    }


@pytest.mark.parametrize(
    ("written", "scope"),
    [
        ({"scope": "topics"}, "topics"),
        ({"scope": "cluster"}, "cluster"),
        ({}, "cluster"),
        ({"scope": "racks"}, "cluster"),
    ],
)
def test_a_scope_that_is_not_known_is_the_widest(written: dict[str, object], scope: str) -> None:
    document = deepcopy(THROTTLE)
    assert parse_applied_state({**document, **written}).to_usage_document()["Scope"] == scope


def test_the_number_of_topics_is_read_where_the_plug_in_reports_it() -> None:
    assert parse_applied_state(THROTTLE).cluster_topics is None
    assert parse_applied_state(THROTTLE).starving == 0
    assert parse_applied_state(sample("applied", "starving")).starving == 20
    assert parse_applied_state(sample("applied", "scope-topics")).cluster_topics == 4212


def test_why_a_decision_holds_on_after_its_lease_is_read() -> None:
    assert parse_applied_state(THROTTLE).kept is None
    kept = sample("applied", "kept-after-its-lease")
    assert parse_applied_state(kept).kept == kept["kept"]


@pytest.mark.accepts("F32")
def test_enforcing_is_verified_once_the_agent_is_seen_exempt() -> None:
    answer = verify(parse_applied_state(THROTTLE), "kquota-1-", NOW)
    assert (answer.verified, answer.contradicted) == (True, False)
    assert "User:CN=kquota-agent,O=example" in answer.sentence


@pytest.mark.accepts("F32")
def test_enforcing_is_refused_with_the_reason() -> None:
    applied = parse_applied_state(THROTTLE)
    # another client's id, also one that merely begins alike
    for prefix in ("kquota-2-", "kquota-11-"):
        other = verify(applied, prefix, NOW)
        assert (other.verified, other.contradicted) == (False, True)
        assert "kquota.exempt.principals" in other.sentence
    # no exempt principal at all: no TLS, a wrong principal
    assert verify(replace(applied, exempt=()), "kquota-1-", NOW).contradicted
    # seen long ago
    last_seen_ms = applied.exempt[0].last_seen_uptime_ms
    assert verify(applied, "kquota-1-", BootMoment(BOOT_ID, last_seen_ms + 30_000)).verified
    long_ago = verify(applied, "kquota-1-", BootMoment(BOOT_ID, last_seen_ms + 31_000))
    assert (long_ago.verified, long_ago.contradicted) == (False, True)
    assert "31 s ago" in long_ago.sentence


@pytest.mark.accepts("F32")
def test_without_an_applied_state_nothing_is_verified_nor_contradicted(tmp_path: Path) -> None:
    answer = verify(unknown(tmp_path / "applied.json"), "kquota-1-", NOW)
    assert (answer.verified, answer.contradicted) == (False, False)
    assert "there is no " in answer.sentence
    assert str(tmp_path / "applied.json") in answer.sentence
