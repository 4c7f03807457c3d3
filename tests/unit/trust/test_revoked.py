"""The list of revoked certificates: its lines, and its replacements."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kquota.policy.events import Refusal
from kquota.trust.authorities import AuthorityFile
from kquota.trust.live_file import FileProblem
from kquota.trust.revoked import read_revoked
from kquota.trust.signer import FileSigner, certificate_in
from tests.unit.trust.issuing import Authority, twisted
from tests.unit.trust.test_authorities import AGENT_7, Clock, judged

ONE, OTHER = "ab" * 32, "0f" * 32
COLONS = ":".join(["AB"] * 32)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", set()),
        ("# none\n\n", set()),
        (f"{ONE}\n", {ONE}),
        (f"{ONE}\n{OTHER.upper()}", {ONE, OTHER}),
        (f"  {ONE}   # broker 3, stolen\r\n{ONE}\n", {ONE}),
        (f"SHA2-256(stdin)= {ONE}\n(stdin)= {ONE}\n", {ONE}),
    ],
)
def test_a_line_is_a_fingerprint_or_a_comment(tmp_path: Path, text: str, expected: set[str]) -> None:
    (tmp_path / "revoked").write_text(text, "utf-8")
    assert read_revoked(tmp_path / "revoked") == expected


@pytest.mark.parametrize(
    "line", ["ab", ONE + "0", ONE[:-1], "x" * 64, f"{ONE} {OTHER}", COLONS, f"sha256 Fingerprint={COLONS}"]
)
def test_another_line_is_refused_and_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "revoked").write_text(f"{ONE}\n# a comment\n{line}\n", "utf-8")
    with pytest.raises(ValueError, match=r"^line 3, .* is no fingerprint"):
        read_revoked(tmp_path / "revoked")


def test_it_takes_what_openssl_prints(tmp_path: Path) -> None:
    files = Authority(tmp_path).issue(AGENT_7)
    key = x509.load_pem_x509_certificates(files.certificate.read_bytes())[0].public_key()
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    printed = f"SHA2-256(stdin)= {hashlib.sha256(der).hexdigest()}\n"
    (tmp_path / "revoked").write_text(printed, "utf-8")
    assert read_revoked(tmp_path / "revoked") == {FileSigner(files).fingerprint}


def test_a_replaced_list_is_in_force_within_a_second(tmp_path: Path) -> None:
    clock, listed = Clock(), tmp_path / "revoked"
    authority = Authority(tmp_path)
    files = authority.issue(AGENT_7)
    signer = FileSigner(files)
    listed.write_text("", "utf-8")
    authorities = AuthorityFile(authority.file, clock, revoked=listed)
    assert judged(authorities, signer) == "agent/7"
    listed.write_text(signer.fingerprint, "utf-8")
    clock.seconds = 0.6
    assert judged(authorities, signer) is Refusal.REVOKED
    assert certificate_in(files.certificate).fingerprint in authorities.revoked()
    listed.write_text("# it was a mistake", "utf-8")
    clock.seconds = 1.2
    assert judged(authorities, signer) == "agent/7"


def test_a_certificate_with_the_other_form_of_its_signature_stays_revoked(tmp_path: Path) -> None:
    """(r, n-s) is valid where (r, s) is: the holder of a certificate can write it, without its authority."""
    authority, listed = Authority(tmp_path), tmp_path / "revoked"
    stolen = FileSigner(authority.issue(AGENT_7))
    listed.write_text(stolen.fingerprint, "utf-8")
    authorities = AuthorityFile(authority.file, Clock(), revoked=listed)
    other = authorities.certificate(twisted(stolen.certificate))
    assert other is not None, "the authority's signature is valid"
    assert other.fingerprint in authorities.revoked()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            ONE + "\nnonsense\n",
            "can't be used: line 2, 'nonsense', is no fingerprint; allowed: lines with the",
        ),
        (None, "can't be read: No such file or directory; allowed: lines with the SHA-256 fingerprint"),
    ],
)
def test_a_bad_list_is_reported_and_the_last_good_one_stays(
    tmp_path: Path, content: str | None, words: str
) -> None:
    clock, listed = Clock(), tmp_path / "revoked"
    authority = Authority(tmp_path)
    listed.write_text(ONE, "utf-8")
    authorities = AuthorityFile(authority.file, clock, revoked=listed)
    if content is None:
        listed.unlink()
    else:
        listed.write_text(content, "utf-8")
    for seconds in (1, 2):
        clock.seconds = seconds
        assert authorities.revoked() == {ONE}
        (problem,) = authorities.problems
        assert problem.startswith(f"the revoked certificates of before stay in force: {listed} {words}")
    with pytest.raises(FileProblem, match="allowed: lines with the SHA-256 fingerprint"):
        AuthorityFile(authority.file, clock, revoked=listed)
    listed.write_text(OTHER, "utf-8")
    clock.seconds = 3
    assert authorities.revoked() == {OTHER}
    assert list(authorities.problems) == []
