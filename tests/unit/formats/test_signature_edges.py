"""The edges of signatures and their order: single bytes, first counters, several names, several keys."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kquota.formats.record_verifier import (
    Claimed,
    RecordVerifier,
    ReplayGuard,
    Signed,
    Turn,
    claimed,
    event_of,
)
from kquota.formats.records import TopicRecord
from kquota.formats.signature_headers import (
    COUNTER_HEADER,
    SIGNATURE_HEADER,
    SIGNER_HEADER,
    SignatureHeaders,
    SigningMode,
    names_agent,
    read_signature_headers,
    signed_bytes,
    writer_of,
)
from kquota.policy.events import Refusal, RefusedEvent
from tests.unit.policy.signers import CLUSTER, NOW_MS, TOPIC, Authorities, Signer, agent, operator, verifier
from tests.unit.policy.situations import NOW, free, raw, usage

KEY = b"7"
VALUE = raw(usage(free(50)))
OURS = agent(7)


def test_the_signed_bytes_of_a_tombstone_are_these() -> None:
    parts = (b"kquota record, version 1", b"c", b"t", b"7", b"cert")
    head = b"".join(bytes([0, 0, 0, len(part)]) + part for part in parts)
    assert signed_bytes("c", "t", 3, b"7", None, 258, b"cert") == head + bytes(
        [0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 2, 0]
    )


@pytest.mark.parametrize(
    ("signature", "certificate", "is_read"), [(1, 1, True), (0, 1, False), (1, 0, False)]
)
def test_a_signature_and_a_certificate_have_at_least_one_byte(
    signature: int, certificate: int, is_read: bool
) -> None:
    claim = SignatureHeaders(b"s" * signature, b"c" * certificate, 0)
    assert read_signature_headers(claim.to_headers()) == (claim if is_read else Refusal.WRONG_SIGNATURE)


def test_headers_are_named_and_a_counter_takes_eight_bytes() -> None:
    assert SignatureHeaders(b"s", b"c", 258).to_headers() == (
        (SIGNATURE_HEADER, b"s"),
        (SIGNER_HEADER, b"c"),
        (COUNTER_HEADER, bytes([0, 0, 0, 0, 0, 0, 1, 2])),
    )


@pytest.mark.parametrize(
    "names",
    [
        ["urn:other", "kquota://*/agent/7"],
        ["kquota://another/agent/7", f"kquota://{CLUSTER}/agent/7"],
        ["kquota://*/agent/8", "kquota://*/agent/7"],
    ],
)
def test_any_of_a_certificate_s_names_may_be_the_writer(names: Sequence[str]) -> None:
    assert writer_of(names, CLUSTER, KEY, tombstone=False) == "agent/7"
    assert isinstance(verifier().judge(Signer(names).record(KEY, VALUE), NOW), Signed)


@pytest.mark.parametrize(
    ("names", "broker_id", "is_named"),
    [
        (["urn:other", "kquota://*/agent/7"], 7, True),
        (["kquota://another/agent/7"], 7, True),
        (["kquota://*/agent/8"], 7, False),
        (["kquota://*/operator/7"], 7, False),
        ([], 7, False),
    ],
)
def test_the_agent_of_a_broker_is_named_in_whatever_cluster(
    names: list[str], broker_id: int, is_named: bool
) -> None:
    assert names_agent(names, broker_id) is is_named


def test_the_first_counter_may_be_zero() -> None:
    counters = ReplayGuard()
    assert counters.highest_read(KEY) == -1
    assert counters.turn(KEY, Signed("agent/7", 0)) is Turn.NEXT
    assert counters.highest_read(KEY) == 0
    assert counters.turn(KEY, Signed("agent/7", 0)) is Turn.REPEATED


def test_after_the_topic_was_read_again_the_higher_counter_of_both_readings_counts() -> None:
    counters = ReplayGuard()
    counters.turn(KEY, Signed("agent/7", 5))
    counters.begin_again()
    counters.turn(KEY, Signed("agent/7", 9))
    counters.turn(b"8", Signed("agent/8", 1))
    counters.reached_end()
    assert [counters.highest(key) for key in (KEY, b"8")] == [9, 1]
    assert counters.turn(KEY, Signed("agent/7", 8)) is Turn.REPLAYED
    assert counters.turn(b"8", Signed("agent/8", 2)) is Turn.NEXT


def test_an_admission_goes_on_with_the_counters_of_an_earlier_one() -> None:
    counters = ReplayGuard()
    counters.turn(KEY, Signed("agent/7", NOW_MS + 1))
    later = RecordVerifier(SigningMode.REQUIRED, TOPIC, Authorities(), counters)
    later.cluster_id = CLUSTER
    assert later.read(OURS.record(KEY, VALUE), NOW) == RefusedEvent("7", Refusal.REPLAYED)


def test_without_the_time_of_the_append_a_certificate_has_to_be_valid_now() -> None:
    record = agent(7, not_after_ms=NOW_MS - 1).record(KEY, VALUE, appended_ms=None)
    assert verifier().read(record, NOW) == RefusedEvent("7", Refusal.EXPIRED)
    assert isinstance(verifier().judge(OURS.record(KEY, VALUE, appended_ms=None), NOW), Signed)


def test_a_record_claims_the_highest_counter_of_its_own_key() -> None:
    counters = ReplayGuard()
    counters.turn(KEY, Signed("agent/7", NOW_MS))
    other = agent(8)
    records = [
        OURS.record(KEY, VALUE, NOW_MS),
        other.record(b"8", VALUE, NOW_MS - 5),
        OURS.record(KEY, VALUE, NOW_MS + 1),
        other.record(b"8", VALUE, NOW_MS - 4),
        OURS.record(KEY, VALUE, NOW_MS + 1),
        TopicRecord(KEY, VALUE),
        OURS.record(KEY, VALUE, NOW_MS),
    ]
    own, others = OURS.certificate, other.certificate
    assert claimed(records, counters) == [
        Claimed(own, is_highest=False),
        Claimed(others, is_highest=True),
        Claimed(own, is_highest=True),
        Claimed(others, is_highest=True),
        Claimed(own, is_highest=False),
        Claimed(None, is_highest=True),
        Claimed(own, is_highest=False),
    ]


def test_a_refused_key_is_shown_whatever_its_bytes_are() -> None:
    assert event_of(TopicRecord(None, None), Refusal.UNSIGNED) == RefusedEvent("", Refusal.UNSIGNED)
    shown = event_of(TopicRecord(b"7\xff", None), Refusal.UNSIGNED)
    assert isinstance(shown, RefusedEvent)
    assert shown.key.startswith("7")
    assert shown.key != "7"


def test_an_operator_reports_for_no_broker() -> None:
    assert verifier().judge(operator().record(KEY, VALUE), NOW) is Refusal.NOT_FOR_KEY
