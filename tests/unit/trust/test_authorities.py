"""Whose certificates count, and what they verify."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from kquota.formats.record_verifier import RecordVerifier
from kquota.formats.records import TopicRecord
from kquota.formats.signature_headers import SignatureHeaders, SigningMode, signed_bytes
from kquota.policy.events import Refusal
from kquota.trust import authorities as subject
from kquota.trust.authorities import AuthorityFile, has_issued
from kquota.trust.keys import uris
from kquota.trust.signer import FileSigner
from tests.unit.trust.issuing import NOW, Authority

AGENT_7 = "kquota://*/agent/7"
NO_SIGNING = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
MAY_SIGN = x509.KeyUsage(False, False, False, False, False, True, True, False, False)


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def judged(
    authorities: AuthorityFile, signer: FileSigner, key: bytes = b"7", certificate: bytes | None = None
) -> object:
    """The writer of a record, or why it is refused; ``certificate`` is put in place of its own."""
    admits = RecordVerifier(SigningMode.REQUIRED, "topic", authorities)
    admits.cluster_id = "cluster"
    counter = round(NOW.timestamp() * 1000)
    message = signed_bytes("cluster", "topic", 0, key, b"{}", counter, signer.certificate)
    claim = SignatureHeaders(signer.sign(message), certificate or signer.certificate, counter)
    verdict = admits.judge(TopicRecord(key, b"{}", counter, 0, claim.to_headers()), NOW)
    return verdict if isinstance(verdict, Refusal) else getattr(verdict, "writer", None)


@pytest.mark.parametrize("algorithm", ["P-256", "P-384", "Ed25519"])
@pytest.mark.parametrize("of_authority", ["P-256", "Ed25519", "RSA"])
def test_a_record_is_verified_by_the_certificate_in_it(
    tmp_path: Path, algorithm: str, of_authority: str
) -> None:
    authority = Authority(tmp_path, algorithm=of_authority)
    signer = FileSigner(authority.issue(AGENT_7, algorithm=algorithm))
    assert judged(AuthorityFile(authority.file), signer) == "agent/7"
    assert judged(AuthorityFile(authority.file), signer, b"8") is Refusal.NOT_FOR_KEY


def test_a_record_of_the_roles_kind_of_certificate_grows_by_less_than_700_bytes(tmp_path: Path) -> None:
    signer = FileSigner(Authority(tmp_path).issue("kquota://bm9uZXNlbnNlLWNsdXN0ZQ/agent/2147483647"))
    headers = SignatureHeaders(signer.sign(b"message"), signer.certificate, 1).to_headers()
    assert sum(len(name) + len(value) + 4 for name, value in headers) < 700


def test_another_authority_of_the_same_name_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    ours, theirs = Authority(tmp_path), Authority(tmp_path / "theirs")
    signer = FileSigner(theirs.issue(AGENT_7))
    assert judged(AuthorityFile(ours.file), signer) is Refusal.UNKNOWN_AUTHORITY


@pytest.mark.parametrize(
    ("may_issue", "key_usage", "usable"),
    [(True, None, True), (True, MAY_SIGN, True), (True, NO_SIGNING, False), (False, None, False)],
)
def test_only_an_authority_issues(
    tmp_path: Path, may_issue: bool, key_usage: x509.KeyUsage | None, usable: bool
) -> None:
    authority = Authority(tmp_path, may_issue=may_issue, key_usage=key_usage)
    signer = FileSigner(authority.issue(AGENT_7))
    if usable:
        assert judged(AuthorityFile(authority.file), signer) == "agent/7"
    else:
        with pytest.raises(ValueError, match="no certificate in it is an authority's"):
            AuthorityFile(authority.file)


def test_the_owner_of_a_certificate_issues_none(tmp_path: Path) -> None:
    """Its own certificate, put into the file by mistake, makes it no authority."""
    ours = Authority(tmp_path)
    (tmp_path / "owner").mkdir()
    owner = Authority(tmp_path / "owner", name="owner", may_issue=False, issuer=ours)
    both = tmp_path / "both.pem"
    both.write_bytes(owner.pem + ours.pem)
    assert judged(AuthorityFile(both), FileSigner(owner.issue(AGENT_7))) is Refusal.UNKNOWN_AUTHORITY


def test_an_intermediate_authority_counts_if_the_file_has_it(tmp_path: Path) -> None:
    root = Authority(tmp_path)
    (tmp_path / "below").mkdir()
    below = Authority(tmp_path / "below", name="intermediate", issuer=root)
    signer = FileSigner(below.issue(AGENT_7))
    assert judged(AuthorityFile(root.file), signer) is Refusal.UNKNOWN_AUTHORITY
    assert judged(AuthorityFile(below.file), signer) == "agent/7"


def test_a_certificate_of_an_expired_authority_has_expired(tmp_path: Path) -> None:
    authority = Authority(tmp_path, valid=(NOW - timedelta(days=9), NOW - timedelta(seconds=1)))
    signer = FileSigner(authority.issue(AGENT_7))
    assert judged(AuthorityFile(authority.file), signer) is Refusal.EXPIRED


def test_a_key_of_another_algorithm_is_nobody_s(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    der = x509.load_pem_x509_certificates(authority.issue(AGENT_7, algorithm="RSA").certificate.read_bytes())[
        0
    ].public_bytes(Encoding.DER)
    assert AuthorityFile(authority.file).certificate(der) is None


def test_a_record_whose_certificate_has_any_one_bit_changed_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    signer, authorities = FileSigner(authority.issue(AGENT_7)), AuthorityFile(authority.file)
    assert judged(authorities, signer) == "agent/7"
    for bit in range(8 * len(signer.certificate)):
        der = bytearray(signer.certificate)
        der[bit // 8] ^= 1 << bit % 8
        assert isinstance(judged(authorities, signer, certificate=bytes(der)), Refusal), bit


@pytest.mark.parametrize("garbage", [b"", b"\x30", b"0" * 8192, b"\x30\x82\xff\xff" + b"0" * 100])
def test_garbage_is_no_certificate(tmp_path: Path, garbage: bytes) -> None:
    assert AuthorityFile(Authority(tmp_path).file).certificate(garbage) is None


def test_changed_authorities_are_taken_up_within_a_second(tmp_path: Path) -> None:
    clock = Clock()
    former = Authority(tmp_path)
    signer = FileSigner(former.issue(AGENT_7, name="former"))
    authorities = AuthorityFile(former.file, clock)
    assert judged(authorities, signer) == "agent/7"
    later = Authority(tmp_path, name="another")
    assert judged(authorities, signer) == "agent/7"
    clock.seconds = 1.0
    assert judged(authorities, signer) is Refusal.UNKNOWN_AUTHORITY
    assert judged(authorities, FileSigner(later.issue(AGENT_7))) == "agent/7"


def test_while_the_authorities_cannot_be_read_those_of_before_count(tmp_path: Path) -> None:
    clock = Clock()
    authority = Authority(tmp_path)
    signer = FileSigner(authority.issue(AGENT_7))
    authorities = AuthorityFile(authority.file, clock)
    authority.file.write_text("garbage", "utf-8")
    clock.seconds = 1.0
    assert judged(authorities, signer) == "agent/7"
    (problem,) = authorities.problems
    assert f"the authorities of before stay in force: {authority.file} can't be used" in problem
    authority.file.write_bytes(authority.pem)
    clock.seconds = 2.0
    assert judged(authorities, signer) == "agent/7"
    assert list(authorities.problems) == []


def test_a_certificate_that_was_refused_is_verified_once_until_the_authorities_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir()
    ours, theirs, clock = Authority(tmp_path), Authority(tmp_path / "theirs"), Clock()
    signer, authorities = FileSigner(theirs.issue(AGENT_7)), AuthorityFile(ours.file, clock)
    verified: list[object] = []

    def counted(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
        verified.append(certificate)
        return has_issued(authority, certificate)

    monkeypatch.setattr(subject, "has_issued", counted)
    assert [judged(authorities, signer) for _ in range(9)] == [Refusal.UNKNOWN_AUTHORITY] * 9
    assert len(verified) == 1
    ours.file.write_bytes(theirs.file.read_bytes() + b"\n")
    clock.seconds += 1
    assert judged(authorities, signer) == "agent/7", "it counts once its authority does"


def test_nothing_in_a_certificate_is_read_before_an_authority_s_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand names take eight times as long to read as a signature to verify."""
    (tmp_path / "theirs").mkdir()
    read: list[x509.Certificate] = []
    monkeypatch.setattr(subject, "uris", lambda certificate: read.append(certificate) or uris(certificate))
    authorities = AuthorityFile(Authority(tmp_path).file)
    forged = FileSigner(Authority(tmp_path / "theirs").issue(AGENT_7, *(f"a:{n}" for n in range(1000))))
    assert judged(authorities, forged) is Refusal.UNKNOWN_AUTHORITY
    assert read == []


def test_refused_certificates_take_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MAX_CERTIFICATES", 3)
    authorities = AuthorityFile(Authority(tmp_path).file)
    for number in range(10):
        assert authorities.certificate(b"x" * number) is None
        assert len(authorities._refused) <= 3
