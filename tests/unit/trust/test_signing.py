"""Signed records at the agent's edges: its signature, orders, counters, and what it makes of refused ones."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from kquota.formats.record_verifier import RecordVerifier, ReplayGuard, Signed
from kquota.formats.records import TopicKind, TopicRecord
from kquota.formats.signature_headers import COUNTER_HEADER, REPORTS_TOLERANCE_MS, SigningMode, next_counter
from kquota.guard import kafka_state
from kquota.guard.cycle_messages import REFUSED_SECONDS, CycleMessages
from kquota.guard.kafka_side import KafkaSide
from kquota.guard.kafka_state import KafkaState, ReaderState
from kquota.kafka.admin import AdminConnection
from kquota.kafka.brokers import BrokerList
from kquota.kafka.config import ClientProperties
from kquota.kafka.followed_topic import ReadTopic
from kquota.kafka.misplaced import partition_of
from kquota.kafka.reader import TopicReader
from kquota.kafka.topic_records import CaughtUp, PartitionsChanged, ReadingFailed, TopicEvent
from kquota.policy.events import Refusal
from kquota.policy.view import FoldResult
from kquota.settings import Settings, SettingsError
from kquota.settings.model import SigningSection
from kquota.trust import authorities
from kquota.trust.authorities import AuthorityFile, has_issued
from kquota.trust.signer import certificate_in
from kquota.trust.signing import (
    OperatorFiles,
    OrderNotSigned,
    OrderSigner,
    RecordSigner,
    counter_to_remember,
    signer_of,
    signing_warnings,
    verifier_of,
)
from tests.integration.waiting import eventually
from tests.unit.guard.configured import settings_in
from tests.unit.guard.cycles import CLUSTER, SETTINGS, Bench, arrival, state
from tests.unit.trust.issuing import Authority

TOPIC = "__kquota_volume_usage"
ORDERS_TOPIC = "__kquota_orders"
SOURCE = Path("/etc/kquota/operator.properties")
NOW = datetime.now(UTC)
VALID = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, valid=VALID)


def configured(authority: Authority, *uris: str, mode: str = "required", **fields: Any) -> Settings:
    files = authority.issue(*uris, valid=VALID)
    signing = {
        "mode": mode,
        "certificate_file": str(files.certificate),
        "key_file": str(files.key),
        "ca_file": str(files.authorities),
    }
    return settings_in(authority.directory, signing=signing | fields)


def record_signer_of(
    settings: Settings,
    counters: ReplayGuard | None = None,
    last: int = 0,
    at: float = 5.0,
    topic: str = TOPIC,
) -> RecordSigner:
    signer = signer_of(settings, None)
    assert signer is not None
    return RecordSigner(signer, topic, counters or ReplayGuard(), last, lambda: at)


def operator_files(authority: Authority, *uris: str) -> OperatorFiles:
    files = authority.issue(*uris, valid=VALID)
    return OperatorFiles(files.certificate, files.key)


def verifier(
    authority: Authority, mode: SigningMode = SigningMode.REQUIRED, topic: str = TOPIC
) -> RecordVerifier:
    admits = RecordVerifier(mode, topic, AuthorityFile(authority.file))
    admits.cluster_id = CLUSTER
    return admits


def test_a_sealed_record_is_admitted_where_kafka_puts_it(authority: Authority) -> None:
    record_signer = record_signer_of(configured(authority, "kquota://*/agent/7"))
    headers = record_signer.headers(b"7", b"{}", CLUSTER, 50)
    record = TopicRecord(b"7", b"{}", None, partition_of(b"7", 50), tuple(headers))
    assert verifier(authority).judge(record, NOW) == Signed("agent/7", 5000)
    elsewhere = record._replace(partition=record.partition + 1)
    assert verifier(authority).judge(elsewhere, NOW) is Refusal.WRONG_SIGNATURE


def test_counters_grow_above_the_clock_the_memory_and_the_topic(authority: Authority) -> None:
    settings = configured(authority, "kquota://*/agent/7")

    def counter(record_signer: RecordSigner) -> int:
        return int.from_bytes(dict(record_signer.headers(b"7", b"{}", CLUSTER, 1))[COUNTER_HEADER], "big")

    record_signer = record_signer_of(settings, at=5.0)
    assert [counter(record_signer), counter(record_signer)] == [5000, 5001]
    assert counter(record_signer_of(settings, last=9000)) == 9001
    counters = ReplayGuard()
    counters.turn(b"7", Signed("agent/7", 9500))
    assert counter(record_signer_of(settings, counters, last=9000)) == 9501


def test_however_often_an_agent_starts_its_counters_stay_within_what_readers_take() -> None:
    remembered, now_ms = 0, 1_000_000_000
    for _ in range(1000):
        now_ms += 1000
        last = next_counter(remembered, 0, now_ms)
        assert last > remembered
        remembered = counter_to_remember(remembered, last, now_ms)
        assert last < remembered
    assert remembered - now_ms < REPORTS_TOLERANCE_MS // 2


def test_the_remembered_counter_is_above_each_and_is_rarely_written() -> None:
    remembered, last, writes = 0, 0, 0
    for second in range(3600):
        now_ms = 1_000_000_000 + 1000 * second
        last = next_counter(last, 0, now_ms)
        assert not remembered or last < remembered
        before, remembered = remembered, counter_to_remember(remembered, last, now_ms)
        writes += remembered != before
    assert writes == 12


def test_a_remembered_counter_that_readers_would_refuse_is_written_over() -> None:
    now_ms = 1_000_000_000
    assert counter_to_remember(2**62, now_ms, now_ms) < now_ms + REPORTS_TOLERANCE_MS


def test_with_signing_off_nobody_signs_and_nobody_looks(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    assert verifier_of(settings) is None
    assert signer_of(settings, 1) is None
    assert signing_warnings(settings, 1, NOW) == ()


def test_the_files_of_the_kafka_clients_are_the_default(authority: Authority) -> None:
    files = authority.issue("kquota://*/agent/7", valid=VALID)
    kafka = {
        "bootstrap.servers": "127.0.0.1:1",
        "ssl.certificate.location": str(files.certificate),
        "ssl.key.location": str(files.key),
        "ssl.ca.location": str(files.authorities),
    }
    settings = settings_in(authority.directory, kafka=kafka, signing={"mode": "required"})
    assert signer_of(settings, 7) is not None
    assert verifier_of(settings) is not None


@pytest.mark.parametrize(
    ("uri", "broken", "words"),
    [
        ("kquota://*/agent/8", None, ("signing.certificate_file names", "agent/8", "kquota://*/agent/7")),
        ("kquota://*/agent/7", "key_file", ("signing.key_file names", "can't be read")),
        ("kquota://*/agent/7", "certificate_file", ("signing.certificate_file names", "can't be read")),
    ],
)
def test_files_that_do_not_fit_the_broker_are_named_with_what_is_wanted(
    authority: Authority, uri: str, broken: str | None, words: tuple[str, ...]
) -> None:
    settings = configured(authority, uri)
    if broken is not None:
        getattr(settings.signing, broken).unlink()
    with pytest.raises(SettingsError) as caught:
        signer_of(settings, 7)
    for word in words:
        assert word in str(caught.value)


def test_authorities_that_cannot_be_read_are_named(authority: Authority) -> None:
    settings = configured(authority, "kquota://*/agent/7")
    authority.file.unlink()
    with pytest.raises(SettingsError, match=r"signing\.ca_file names .*ca\.pem, which can't be read"):
        verifier_of(settings)


def test_a_certificate_of_another_authority_is_a_warning(authority: Authority) -> None:
    settings = configured(authority, "kquota://*/agent/7")
    assert signing_warnings(settings, 7, NOW) == ()
    Authority(authority.directory, name="another", valid=VALID)
    (warning,) = signing_warnings(settings, 7, NOW)
    assert "has issued" in warning


@pytest.mark.parametrize("mode", ["accept", "required"])
def test_an_order_is_signed_by_who_may_give_it(authority: Authority, mode: str) -> None:
    agents = configured(authority, "kquota://*/agent/7", mode=mode)
    jane = operator_files(authority, "kquota://*/operator/jane")
    headers = OrderSigner(agents, jane, SOURCE, b"hold", b"{}").headers(CLUSTER, 1)
    judged = verifier(authority, topic=ORDERS_TOPIC).judge(
        TopicRecord(b"hold", b"{}", None, 0, tuple(headers), TopicKind.ORDERS), datetime.now(UTC)
    )
    assert judged == Signed("operator/jane", judged.counter)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("kquota://*/agent/7", "names kquota://*/agent/7, which gives no orders"),
        ("kquota://other/operator/jane", "which gives no orders"),
        (None, "an order needs an operator's signature"),
        ("missing", "can't be read"),
    ],
)
def test_an_order_that_may_not_be_given_fails_or_goes_unsigned(
    authority: Authority, uri: str | None, sentence: str
) -> None:
    required = configured(authority, "kquota://*/agent/7")
    accept = configured(authority, "kquota://*/agent/7", mode="accept")
    files = None if uri is None else operator_files(authority, uri)
    if files is not None and uri == "missing":
        files.key.unlink()
    with pytest.raises(OrderNotSigned) as caught:
        OrderSigner(required, files, SOURCE, b"hold", b"{}").headers(CLUSTER, 1)
    assert sentence in str(caught.value)
    assert str(SOURCE) in str(caught.value)
    record_signer = OrderSigner(accept, files, SOURCE, b"hold", b"{}")
    assert record_signer.headers(CLUSTER, 1) == ()
    assert f"the order is not signed: {caught.value}" == record_signer.warning


def test_an_operator_whose_certificate_is_revoked_gives_no_order(
    authority: Authority, tmp_path: Path
) -> None:
    listed = tmp_path / "revoked"
    listed.write_text("", "utf-8")
    agents = configured(authority, "kquota://*/agent/7", revoked_file=str(listed))
    jane = operator_files(authority, "kquota://*/operator/jane")
    record_signer = OrderSigner(agents, jane, SOURCE, b"hold", b"{}")
    assert record_signer.headers(CLUSTER, 1) != ()
    listed.write_text(certificate_in(jane.certificate).fingerprint, "utf-8")
    with pytest.raises(OrderNotSigned, match=rf"{SOURCE} names a certificate that {listed} revokes"):
        record_signer.headers(CLUSTER, 1)
    listed.write_text("nonsense", "utf-8")
    with pytest.raises(OrderNotSigned, match=r"signing\.revoked_file names .*: line 1, 'nonsense', is no"):
        record_signer.headers(CLUSTER, 1)


def knowledge(authority: Authority) -> KafkaState:
    verifier = RecordVerifier(SigningMode.REQUIRED, TOPIC, AuthorityFile(authority.file))
    usage = ReaderState(TOPIC, TopicKind.USAGE, verifier)
    found = KafkaState(usage, ReaderState(ORDERS_TOPIC, TopicKind.ORDERS))
    found.take(BrokerList(frozenset({1}), CLUSTER, 0.0))
    found.take(PartitionsChanged(4))
    return found


def test_nobody_has_the_topic_refused_by_a_record_in_a_wrong_partition(authority: Authority) -> None:
    known, key = knowledge(authority), b"7"
    wrong = (partition_of(key, 4) + 1) % 4
    headers = tuple(
        record_signer_of(configured(authority, "kquota://*/agent/7")).headers(key, b"{}", CLUSTER, 4)
    )
    known.take(TopicRecord(key, b"{}", None, wrong))
    known.take(TopicRecord(key, b"{}", None, wrong, headers))
    assert known.usage.misplaced.sentence is None
    record = TopicRecord(key, b"{}", 3, wrong, headers, offset=1)
    assert known.take(record) is record


@pytest.mark.parametrize("key", [b"hold", b"quarantine/7"])
def test_an_order_in_a_partition_of_before_refuses_its_topic(authority: Authority, key: bytes) -> None:
    known = ReaderState(ORDERS_TOPIC, TopicKind.ORDERS, verifier(authority, topic=ORDERS_TOPIC))
    known.take(PartitionsChanged(4))
    known.take(misplaced(authority, "operator/jane", key, ORDERS_TOPIC))
    assert "partitions were added" in str(known.misplaced.sentence)


def test_a_record_of_an_agent_in_a_partition_of_before_refuses_no_topic(
    authority: Authority,
) -> None:
    known = knowledge(authority)
    known.take(misplaced(authority, "agent/7", b"7", TOPIC))
    assert known.usage.misplaced.sentence is None


def misplaced(authority: Authority, writer: str, key: bytes, topic: str) -> TopicRecord:
    """A signed record where its key lay before the topic had four partitions."""
    partitions = next(n for n in range(1, 4) if partition_of(key, n) != partition_of(key, 4))
    record_signer = record_signer_of(configured(authority, f"kquota://*/{writer}"), topic=topic)
    headers = tuple(record_signer.headers(key, b"{}", CLUSTER, partitions))
    return TopicRecord(key, b"{}", None, partition_of(key, partitions), headers)


def test_nothing_is_published_before_it_can_be_signed(authority: Authority) -> None:
    settings = configured(authority, "kquota://*/agent/7")
    side = KafkaSide(
        settings, 7, CLUSTER, verifier=verifier_of(settings), record_signer=record_signer_of(settings)
    )
    published: list[tuple[Any, ...]] = []
    try:
        side.usage.publish = lambda *record: published.append(record)  # type: ignore[method-assign]
        side.publish(b"7", b"{}")
        assert published == []
        side.knowledge.take(PartitionsChanged(1))
        side.publish(b"7", b"{}")
        ((key, value, headers),) = published
        judged = verifier(authority).judge(TopicRecord(key, value, None, 0, tuple(headers)), NOW)
        assert isinstance(judged, Signed)
    finally:
        side.close()


def test_a_cycle_verifies_few_new_certificates_and_leaves_the_rest_to_later_ones(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified: list[x509.Certificate] = []

    def counted(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
        verified.append(certificate)
        return has_issued(issuer, certificate)

    monkeypatch.setattr(authorities, "has_issued", counted)
    monkeypatch.setattr(kafka_state, "MAX_NEW_CERTIFICATES_A_CYCLE", 10)
    settings, admits = configured(authority, "kquota://*/agent/7"), verifier(authority)
    record_signer, now = record_signer_of(settings, at=NOW.timestamp()), NOW

    def genuine() -> TopicRecord:
        return TopicRecord(b"7", b"{}", headers=tuple(record_signer.headers(b"7", b"{}", CLUSTER, 1)))

    def forged(number: int) -> TopicRecord:
        name, certificate, counter = genuine().headers
        assert certificate[1] is not None
        last = (int.from_bytes(certificate[1][-4:], "big") ^ number).to_bytes(4, "big")
        return TopicRecord(b"7", b"{}", headers=(name, (certificate[0], certificate[1][:-4] + last), counter))

    def is_genuine(one: TopicRecord) -> bool:
        return isinstance(admits.judge(one, now), Signed)

    side = KafkaSide(settings, 1, CLUSTER, verifier=admits)
    try:
        for number in range(1, 36):  # one of ours, five new ones, one that was there before
            for record in (genuine(), *(forged(5 * number + n) for n in range(5)), forged(5)):
                side.queue.put(record)
        side.queue.put(CaughtUp(245))
        cycles, gathered = [], list[TopicEvent]()
        while CaughtUp(245) not in gathered:
            before, gathered = len(verified), side.gather(0)
            cycles.append([is_genuine(one) for one in gathered if isinstance(one, TopicRecord)])
            assert len(verified) - before <= 10
        assert [known for cycle in cycles for known in cycle] == ([True] + 6 * [False]) * 35
        assert len(verified) == 1 + 5 * 35
        for _ in range(100):
            side.queue.put(genuine())
            side.queue.put(forged(5))
        known = [is_genuine(one) for one in side.gather(0) if isinstance(one, TopicRecord)]
        assert known == [True, False] * 100, "what is known costs none"
    finally:
        side.close()


def signed_bench(authority: Authority) -> Bench:
    bench = Bench(settings=required())
    bench.cycle.configure(required(), bench.ports, verifier(authority))
    bench.echoes = False
    return bench


def required() -> Settings:
    return SETTINGS.model_copy(update={"signing": SigningSection(mode=SigningMode.REQUIRED)})


def test_a_refused_record_under_its_own_key_is_answered_at_once(authority: Authority) -> None:
    bench = signed_bench(authority)
    for _ in range(4):
        bench.run()
    before = len(bench.ports.published)
    report = bench.run(arrival(1, None))
    assert report.fold.results[FoldResult.REFUSED] == 1
    assert report.fold.refusals == {"unsigned": 1}
    assert bench.cycle.publishes_next
    bench.run()
    assert len(bench.ports.published) == before + 1


def test_its_own_record_is_not_answered_where_it_is_refused_itself(authority: Authority) -> None:
    bench = signed_bench(authority)
    for _ in range(4):
        bench.run()
    bench.run(arrival(1, bench.ports.published[-1]))
    assert not bench.cycle.publishes_next


def test_refused_records_of_a_backlog_are_counted_and_no_news(authority: Authority) -> None:
    bench = signed_bench(authority)
    bench.behind = {TopicKind.USAGE}
    report = bench.run(arrival(2, bench.usage(50)))
    assert report.fold.refusals == {"unsigned": 1}
    assert report.fold.refused == []


def test_what_counted_unsigned_is_forgotten_after_a_reload_that_requires_signatures(
    authority: Authority,
) -> None:
    bench = Bench()
    bench.run(arrival(9, bench.usage(5)))
    assert state(bench.settle()) == "PAUSE", "the verdict of a broker that is not there"
    bench.behind = {TopicKind.USAGE}
    bench.cycle.configure(required(), bench.ports, verifier(authority, SigningMode.ACCEPT))
    assert state(bench.run()) == "PAUSE"
    bench.behind, bench.echoes = set(), True
    assert state(bench.settle()) == "OPEN"


def test_refused_records_are_one_trouble_until_none_has_come_for_a_minute(authority: Authority) -> None:
    bench, messages = signed_bench(authority), CycleMessages(1)
    for _ in range(4):
        bench.run()

    def troubles(*arrivals: TopicRecord, after: float = 0.2) -> list[str]:
        report = bench.run(*arrivals, after=after)
        return [one.sentence for one in messages.problems(report) if one.subject == "signatures"]

    expected = ["the record of key 2 is refused: it is not signed"]
    assert troubles(arrival(2, bench.usage(50))) == expected
    assert troubles(after=REFUSED_SECONDS) == expected
    assert troubles(after=0.1) == []


def test_troubles_with_invented_keys_are_bounded(authority: Authority) -> None:
    bench, messages = signed_bench(authority), CycleMessages(1)
    for _ in range(4):
        bench.run()
    report = bench.run(*(arrival(1000 + n, None) for n in range(100)))
    assert len(list(messages.problems(report))) < 20
    assert report.fold.refusals == {"unsigned": 100}


def test_a_reader_begins_when_it_may(tmp_path: Path) -> None:
    properties = ClientProperties({"bootstrap.servers": "127.0.0.1:1"}, 1)
    admin, events, allowed = AdminConnection(properties), list[object](), list[bool]()
    reader = TopicReader(properties, admin, ReadTopic(TOPIC, events.append), may_begin=lambda: bool(allowed))
    try:
        reader.start()
        time.sleep(0.5)
        assert events == []
        allowed.append(True)
        eventually(lambda: any(isinstance(one, ReadingFailed) for one in events), "it finds no broker")
    finally:
        reader.close()
        admin.close()
