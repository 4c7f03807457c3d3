"""An agent whose list of revoked certificates is replaced while it runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kquota.formats.record_verifier import RecordVerifier, ReplayGuard
from kquota.formats.records import TopicKind, TopicRecord
from kquota.formats.signature_headers import SigningMode
from kquota.kafka.topic_records import TopicEvent
from kquota.policy.decision import FallbackAction
from kquota.policy.timestamps import format_utc
from kquota.settings import Settings, SettingsError
from kquota.settings.model import SigningSection
from kquota.trust.authorities import AuthorityFile
from kquota.trust.signer import FileSigner, SigningFiles
from kquota.trust.signing import (
    RecordSigner,
    own_certificate,
    signer_problems,
    signing_problems,
    verifier_of,
)
from tests.unit.guard.configured import settings_in
from tests.unit.guard.cycles import CLUSTER, NEWS, Bench, cut, moment, order, settings_with, state
from tests.unit.trust.issuing import Authority
from tests.unit.trust.test_authorities import Clock
from tests.unit.trust.test_signing import NOW, ORDERS_TOPIC, TOPIC, VALID
from tests.unit.wording import say

REQUIRED = SigningSection(mode=SigningMode.REQUIRED)


class Fleet:
    """The agent of broker 1 with its list, and others that report to it."""

    def __init__(self, directory: Path, fallback: FallbackAction = FallbackAction.PAUSE) -> None:
        self.authority, self.listed, self.clock = (
            Authority(directory, valid=VALID),
            directory / "revoked",
            Clock(),
        )
        self.listed.write_text("", "utf-8")
        settings = settings_with(signing=REQUIRED, fallback_action=fallback)
        self.bench = Bench(settings=settings)
        self.bench.cycle.configure(settings, self.bench.ports, *self.verifiers())
        self.bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
        self.bench.echoes = False
        self.own = self.record_signer("agent/1")

    def verifiers(self) -> Iterator[RecordVerifier]:
        """Yield those of the usage topic and of the orders topic; each reads the list by itself."""
        for topic in (TOPIC, ORDERS_TOPIC):
            authorities = AuthorityFile(self.authority.file, self.clock, revoked=self.listed)
            verifier = RecordVerifier(SigningMode.REQUIRED, topic, authorities)
            verifier.cluster_id = CLUSTER
            yield verifier

    def record_signer(
        self, name: str, file: str | None = None, topic: str = TOPIC, at: float | None = None
    ) -> RecordSigner:
        files = self.authority.issue(f"kquota://*/{name}", valid=VALID, name=file or name.replace("/", "-"))
        return RecordSigner(
            FileSigner(files), topic, ReplayGuard(), clock=lambda: self.bench.seconds if at is None else at
        )

    def record(
        self, record_signer: RecordSigner, key: str, value: dict[str, Any], topic: TopicKind = TopicKind.USAGE
    ) -> TopicRecord:
        raw = json.dumps(value).encode()
        headers = tuple(record_signer.headers(key.encode(), raw, CLUSTER, 1))
        at_ms = (
            None if topic is TopicKind.USAGE else round(moment(self.bench.seconds).wall.timestamp() * 1000)
        )
        return TopicRecord(key.encode(), raw, at_ms, headers=headers, topic=topic)

    def run(self, *events: TopicEvent, after: float = 0.2) -> str | None:
        """Run a cycle, the own report first."""
        own = self.record(self.own, "1", self.bench.usage(50))
        return state(self.bench.run(own, *events, after=after))

    def revoke(self, *record_signers: RecordSigner) -> None:
        self.listed.write_text(
            "\n".join(record_signer.signer.fingerprint for record_signer in record_signers), "utf-8"
        )
        self.clock.seconds += 0.3

    def look(self) -> list[TopicKind]:
        return self.bench.cycle.take_revocations()


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


@pytest.mark.accepts("G12")
@pytest.mark.parametrize("fallback", [FallbackAction.PAUSE, FallbackAction.BOUNDED])
def test_an_active_broker_with_nothing_but_a_revoked_report_is_not_known(
    tmp_path: Path, fallback: FallbackAction
) -> None:
    fleet = Fleet(tmp_path, fallback)
    disk = {"VolumeName": "/dev/other", "Capacity": 1000, "Consumed": 0, "FillCeiling": 1}
    report = fleet.bench.usage(50, Volumes=[disk])
    stolen = fleet.record_signer("agent/2")
    assert [fleet.run(fleet.record(stolen, "2", report)) for _ in range(3)][-1] == "OPEN"
    assert not fleet.look()
    fleet.revoke(stolen)
    assert fleet.look()
    assert fleet.run() == "PAUSE"
    fleet.bench.behind = {TopicKind.USAGE}
    assert fleet.run(cut(), fleet.record(stolen, "2", report)) == "PAUSE"
    fleet.bench.behind = set()
    assert fleet.run() == "PAUSE"
    renewed = fleet.record_signer("agent/2", "renewed")
    assert fleet.run(fleet.record(renewed, "2", fleet.bench.usage(50))) == "OPEN"


@pytest.mark.accepts("G12", "A31")
@pytest.mark.parametrize("restarts", [False, True])
def test_the_join_grace_excuses_no_broker_whose_report_was_revoked(fleet: Fleet, restarts: bool) -> None:
    fleet.bench.news = NEWS
    stolen = fleet.record_signer("agent/2")
    full = fleet.record(stolen, "2", fleet.bench.usage(5))
    assert [fleet.run(full), fleet.run(), fleet.run()][-1] == "PAUSE"
    fleet.bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    assert fleet.run() == "PAUSE"
    fleet.revoke(stolen)
    assert fleet.look()
    assert fleet.run() == "PAUSE"
    if restarts:  # the record is all that it finds on the topic
        assert fleet.run(cut(), full) == "PAUSE"
    renewed = fleet.record_signer("agent/2", "renewed")
    assert fleet.run(fleet.record(renewed, "2", fleet.bench.usage(50))) == "OPEN"


def test_the_verdict_of_a_broker_that_is_not_there_ends_with_its_certificate(fleet: Fleet) -> None:
    fleet.bench.news = NEWS
    stolen = fleet.record_signer("agent/9")
    full = fleet.record(stolen, "9", fleet.bench.usage(5))
    assert [fleet.run(full), fleet.run(), fleet.run()][-1] == "PAUSE"
    fleet.revoke(stolen)
    assert fleet.look()
    assert fleet.run() == "OPEN"


@pytest.mark.accepts("G12")
def test_a_hold_of_a_revoked_operator_ends(fleet: Fleet) -> None:
    fleet.bench.news = NEWS
    thief = fleet.record_signer("operator/thief", topic=ORDERS_TOPIC, at=moment(0).wall.timestamp())
    hold = fleet.record(thief, "hold", order(600, Action="pause"), TopicKind.ORDERS)
    assert [fleet.run(hold), fleet.run(), fleet.run()][-1] == "PAUSE"
    fleet.revoke(thief)
    assert fleet.look()
    assert fleet.run() == "OPEN"


def test_a_reload_with_another_list_takes_it_up(fleet: Fleet) -> None:
    fleet.bench.news = NEWS
    stolen = fleet.record_signer("agent/9")
    assert [fleet.run(fleet.record(stolen, "9", fleet.bench.usage(5))), fleet.run(), fleet.run()][
        -1
    ] == "PAUSE"
    fleet.revoke(stolen)
    fleet.bench.cycle.configure(settings_with(signing=REQUIRED), fleet.bench.ports, *fleet.verifiers())
    fleet.look()
    assert fleet.run() == "OPEN"


def configured(tmp_path: Path, listed: Path) -> tuple[Settings, SigningFiles]:
    authority = Authority(tmp_path, valid=VALID)
    files = authority.issue("kquota://*/agent/7", valid=VALID)
    signing = {
        "mode": "required",
        "certificate_file": str(files.certificate),
        "key_file": str(files.key),
        "ca_file": str(files.authorities),
        "revoked_file": str(listed),
    }
    return settings_in(tmp_path, signing=signing), files


def test_the_agent_of_a_revoked_certificate_says_so(tmp_path: Path) -> None:
    listed = tmp_path / "revoked"
    listed.write_text("", "utf-8")
    settings, files = configured(tmp_path, listed)
    record_signer = RecordSigner(FileSigner(files), TOPIC, ReplayGuard())

    def said() -> tuple[bool, list[str]]:
        verifier = verifier_of(settings)
        own = own_certificate(record_signer, verifier)
        assert own is not None
        sentences = [trouble.sentence for trouble in signer_problems(record_signer, own, NOW)]
        assert list(signing_problems(settings, verifier, NOW)) == sentences, "the same words"
        return own.revoked, sentences

    assert said() == (False, [])
    listed.write_text(record_signer.signer.fingerprint, "utf-8")
    revoked, (sentence,) = said()
    assert revoked
    assert sentence == say("own-certificate-revoked", fingerprint=record_signer.signer.fingerprint)
    assert own_certificate(None, None) is None
    assert not list(signer_problems(None, None, NOW))


def test_the_end_of_the_authority_is_named_a_month_before(tmp_path: Path) -> None:
    (listed := tmp_path / "revoked").write_text("", "utf-8")
    settings, files = configured(tmp_path, listed)
    record_signer, verifier, end = (
        RecordSigner(FileSigner(files), TOPIC, ReplayGuard()),
        verifier_of(settings),
        VALID[1],
    )
    own = own_certificate(record_signer, verifier)
    assert own is not None
    assert own.authority_end == end
    for days, count in ((31, 0), (29, 1), (-1, 1)):
        now = end - timedelta(days=days)
        said = [trouble.sentence for trouble in signer_problems(record_signer, own, now)]
        assert len([one for one in said if f"ends at {format_utc(end)}" in one]) == count
        assert list(signing_problems(settings, verifier, now)) == said


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda listed: listed.write_text("# bad\nab\n", "utf-8"),
            "can't be used: line 2, 'ab',",
        ),
        (lambda listed: listed.unlink(), "can't be read: No such"),
    ],
)
def test_a_bad_list_at_the_start_is_a_bad_configuration(
    tmp_path: Path, spoil: Callable[[Path], object], words: str
) -> None:
    listed = tmp_path / "revoked"
    listed.write_text("", "utf-8")
    settings, _ = configured(tmp_path, listed)
    spoil(listed)
    with pytest.raises(SettingsError) as refused:
        verifier_of(settings)
    assert f"signing.revoked_file names {listed}, which {words}" in str(refused.value)
    assert "allowed: lines with" in str(refused.value)
