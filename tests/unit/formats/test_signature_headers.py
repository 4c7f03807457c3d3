"""The bytes that a signature covers, the writers of each key, and the headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.formats.record_verifier import RecordVerifier
from kquota.formats.records import TopicKind, TopicRecord
from kquota.formats.signature_headers import (
    COUNTER_HEADER,
    MAX_CERTIFICATE_BYTES,
    MAX_COUNTER,
    MAX_SIGNATURE_BYTES,
    REPORTS_TOLERANCE_MS,
    SIGNATURE_HEADER,
    SIGNER_HEADER,
    SignatureHeaders,
    SigningMode,
    next_counter,
    order_name_wanted,
    read_signature_headers,
    signed_bytes,
    writer_of,
)
from kquota.policy.events import Refusal, RefusedEvent, UsageEvent
from tests.unit.policy.clusters import bounded
from tests.unit.policy.signers import CLUSTER, NOW_MS, TOPIC, Authorities, Signer, agent, operator, verifier
from tests.unit.policy.situations import NOW, free, raw, usage

VALUE = raw(usage(free(50)))
PLACES = st.tuples(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    st.integers(0, 3),
    st.binary(max_size=4),
    st.none() | st.binary(max_size=4),
    st.integers(0, MAX_COUNTER),
    st.binary(max_size=3),
)
HEADERS = st.dictionaries(
    st.sampled_from([SIGNATURE_HEADER, SIGNER_HEADER, COUNTER_HEADER, "actor"]),
    st.none() | st.binary(max_size=9),
)


@given(one=PLACES, other=PLACES)
@bounded(500)
def test_no_two_records_have_the_same_signed_bytes(one: tuple, other: tuple) -> None:
    assert (signed_bytes(*one) == signed_bytes(*other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "bc", 0, b"", b"", 0, b""), ("ab", "c", 0, b"", b"", 0, b"")),
        (("a", "b", 0, b"cd", b"", 0, b""), ("a", "bc", 0, b"d", b"", 0, b"")),
        (("a", "b", 0, b"cd", b"", 0, b"e"), ("a", "b", 0, b"c", b"", 0, b"de")),
        (("a", "b", 0, b"", None, 0, b""), ("a", "b", 0, b"", b"", 0, b"")),
        (("a", "b", 0, b"", b"\0", 0, b""), ("a", "b", 0, b"", b"", 0, b"")),
        (("a", "b", 0, b"c", b"", 0, b""), ("a", "b", 0, b"c", b"c", 0, b"")),
        (("a", "b", 1, b"", None, 0, b""), ("a", "b", 0, b"", None, 1 << 32, b"")),
    ],
)
def test_bytes_never_move_from_one_part_to_its_neighbour(one: tuple, other: tuple) -> None:
    assert signed_bytes(*one) != signed_bytes(*other)


def test_what_is_signed_is_the_same_for_ever() -> None:
    assert signed_bytes("c1", "t", 2, b"7", b"{}", 3, b"x").hex() == (
        "000000186b71756f7461207265636f72642c2076657273696f6e2031"
        "000000026331" "0000000174" "0000000137" "0000000178"
        "00000002" "0000000000000003" "01" "7b7d"
    )  # fmt: skip


@pytest.mark.accepts("G9")
@given(data=st.data())
@bounded(300)
def test_a_record_with_one_bit_changed_does_not_count(data: st.DataObject) -> None:
    record = agent(7).record(b"7", VALUE)
    parts = {"key": b"7", "value": VALUE or b"", **{name: value or b"" for name, value in record.headers}}
    where = data.draw(st.sampled_from(sorted(parts)))
    bit = data.draw(st.integers(0, 8 * len(parts[where]) - 1))
    flipped = bytearray(parts[where])
    flipped[bit // 8] ^= 1 << bit % 8
    parts[where] = bytes(flipped)
    headers = tuple((name, parts[name]) for name, _ in record.headers)
    changed = record._replace(key=parts["key"], value=parts["value"], headers=headers)
    assert not isinstance(verifier().read(changed, NOW), UsageEvent)
    assert isinstance(verifier().read(record, NOW), UsageEvent)


@pytest.mark.parametrize("change", [{"partition": 1}, {"value": b""}, {"value": None}, {"key": b"07"}])
def test_a_copy_in_another_place_does_not_count(change: dict) -> None:
    copy = agent(7).record(b"7", VALUE)._replace(**change)
    assert not isinstance(verifier().read(copy, NOW), UsageEvent)


@pytest.mark.parametrize(("cluster_id", "topic"), [("another", TOPIC), (CLUSTER, "another")])
def test_a_copy_of_another_cluster_or_topic_does_not_count(cluster_id: str, topic: str) -> None:
    admits = RecordVerifier(SigningMode.REQUIRED, topic, Authorities())
    admits.cluster_id = cluster_id
    assert admits.judge(agent(7).record(b"7", VALUE), NOW) is Refusal.WRONG_SIGNATURE


@given(headers=HEADERS)
@bounded(300)
def test_headers_are_read_or_refused_whatever_they_are(headers: dict[str, bytes | None]) -> None:
    claim = read_signature_headers(tuple(headers.items()))
    ours = {name for name in headers if name != "actor"}
    if not ours:
        assert claim is Refusal.UNSIGNED
    elif isinstance(claim, SignatureHeaders):
        assert read_signature_headers(claim.to_headers()) == claim
        assert dict(claim.to_headers()) == {name: headers[name] for name in ours}
    else:
        assert claim is Refusal.WRONG_SIGNATURE


def test_headers_of_the_largest_allowed_sizes_are_read_and_no_larger_ones() -> None:
    claim = SignatureHeaders(b"s" * MAX_SIGNATURE_BYTES, b"c" * MAX_CERTIFICATE_BYTES, MAX_COUNTER)
    assert read_signature_headers(claim.to_headers()) == claim
    for larger in (
        SignatureHeaders(claim.signature + b"s", claim.certificate, MAX_COUNTER),
        SignatureHeaders(claim.signature, claim.certificate + b"c", MAX_COUNTER),
        SignatureHeaders(claim.signature, claim.certificate, MAX_COUNTER + 1),
    ):
        assert read_signature_headers(larger.to_headers()) is Refusal.WRONG_SIGNATURE


def test_a_header_that_comes_twice_is_refused() -> None:
    headers = agent(7).record(b"7", VALUE).headers
    for header in headers:
        assert read_signature_headers((*headers, header)) is Refusal.WRONG_SIGNATURE


@pytest.mark.parametrize(
    ("signer", "key", "tombstone", "writer"),
    [
        (agent(7), b"7", False, "agent/7"),
        (agent(7), b"7", True, "agent/7"),
        (agent(7), b"8", False, None),
        (agent(7), b"77", False, None),
        (agent("07"), b"7", False, None),
        (agent(7), b"quarantine/7", False, None),
        (agent(7), b"hold", False, None),
        (agent(7), b"hold", True, None),
        (agent(7), b"maintenance/7", False, None),
        (operator(), b"hold", False, None),  # an order, on the wrong topic
        (agent(7), b"certificate/7", False, None),
        (agent(7, CLUSTER), b"7", False, "agent/7"),
        (agent(7, "another"), b"7", False, None),
        (operator(), b"7", True, "operator/jane"),  # its removal
        (operator(), b"7", False, None),  # a report
        (operator("7"), b"7", False, None),
        (operator(cluster="another"), b"hold", False, None),
        (Signer(("kquota://*/agent/8", "kquota://*/agent/7")), b"7", False, "agent/7"),
        (Signer(("kquota://*/agent/7/8",)), b"7", False, None),
        (Signer(("KQUOTA://*/agent/7",)), b"7", False, None),
        (Signer(("kquota://*/agent/7 ",)), b"7", False, None),
        (Signer(("https://*/agent/7",)), b"7", False, None),
        (Signer(()), b"7", False, None),
    ],
)
def test_a_certificate_s_names_decide_which_keys_its_owner_writes(
    signer: Signer, key: bytes, tombstone: bool, writer: str | None
) -> None:
    assert writer_of(signer.names, CLUSTER, key, tombstone=tombstone) == writer


def test_the_wanted_name_is_told_as_it_is_to_be_written() -> None:
    assert order_name_wanted("c") == "kquota://c/operator/<name>"
    assert order_name_wanted(None) == "kquota://<cluster id>/operator/<name>"


ORDER_KEYS = [b"hold", b"quarantine/7", b"maintenance/7", b"decommission/7"]


@pytest.mark.parametrize("key", ORDER_KEYS)
@pytest.mark.parametrize("tombstone", [False, True])
def test_on_the_orders_topic_operators_alone_write(key: bytes, tombstone: bool) -> None:
    for names, writer in (
        (["kquota://*/operator/jane"], "operator/jane"),
        ([f"kquota://{CLUSTER}/operator/jane"], "operator/jane"),
        (["kquota://other/operator/jane"], None),
        (["kquota://*/agent/7"], None),
    ):
        found = writer_of(names, CLUSTER, key, tombstone=tombstone, topic=TopicKind.ORDERS)
        assert found == writer


def test_no_report_is_signed_on_the_orders_topic() -> None:
    names = ["kquota://*/agent/7", "kquota://*/operator/jane"]
    assert writer_of(names, CLUSTER, b"7", tombstone=False, topic=TopicKind.ORDERS) is None


@pytest.mark.accepts("G9")
@pytest.mark.parametrize(
    ("signer", "cause"),
    [
        (agent(7, authority="a stranger's"), Refusal.UNKNOWN_AUTHORITY),
        (agent(7, not_after_ms=NOW_MS - 1), Refusal.EXPIRED),
        (agent(7, not_before_ms=NOW_MS + 1), Refusal.EXPIRED),
        (agent(8), Refusal.NOT_FOR_KEY),
    ],
)
def test_each_cause_has_its_name(signer: Signer, cause: Refusal) -> None:
    assert verifier().read(signer.record(b"7", VALUE), NOW) == RefusedEvent("7", cause)


@pytest.mark.accepts("G9")
def test_a_certificate_has_to_be_valid_when_the_record_was_appended_not_when_it_is_read() -> None:
    record = agent(7, not_after_ms=NOW_MS).record(b"7", VALUE)
    for appended_ms, counts in ((NOW_MS, True), (NOW_MS + 1, False), (None, True)):
        judged = verifier().judge(record._replace(appended_ms=appended_ms), NOW)
        assert (judged is not Refusal.EXPIRED) is counts


@pytest.mark.parametrize("headers", [(), (("actor", b"alice"),)])
def test_an_unsigned_record_counts_unless_signatures_are_required(headers: tuple) -> None:
    record = TopicRecord(b"7", VALUE, NOW_MS, 0, headers)
    read = verifier(SigningMode.ACCEPT).read(record, NOW)
    assert isinstance(read, UsageEvent)
    assert read.record.signer is None
    assert verifier().read(record, NOW) == RefusedEvent("7", Refusal.UNSIGNED)


def test_a_bad_signature_does_not_count_where_an_unsigned_record_would() -> None:
    forged = agent(7).record(b"7", b"{}")._replace(value=VALUE)
    assert verifier(SigningMode.ACCEPT).read(forged, NOW) == RefusedEvent("7", Refusal.WRONG_SIGNATURE)


def test_a_counted_record_names_its_signer() -> None:
    read = verifier().read(agent(7).record(b"7", VALUE), NOW)
    assert isinstance(read, UsageEvent)
    assert read.record.signer == "agent/7"


@given(
    last=st.integers(-1, MAX_COUNTER),
    seen=st.integers(0, MAX_COUNTER),
    now_ms=st.integers(0, NOW_MS),
)
@bounded(100)
def test_a_counter_is_above_all_before_it_that_a_clock_has_made_and_no_less_than_the_time(
    last: int, seen: int, now_ms: int
) -> None:
    counter = next_counter(last, seen, now_ms)
    latest = now_ms + REPORTS_TOLERANCE_MS
    assert counter > last or last >= latest
    assert counter > seen or seen >= latest
    assert now_ms <= counter <= latest, "readers take it"
    assert counter in (last + 1, seen + 1, now_ms)
