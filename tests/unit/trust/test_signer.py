"""The agent's own key and certificate: what is refused, and when changed files are taken up."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from kquota.trust.authorities import AuthorityFile
from kquota.trust.live_file import FileProblem
from kquota.trust.signer import FileSigner, SigningFiles
from tests.unit.trust.issuing import NOW, Authority

AGENT_7 = "kquota://*/agent/7"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def problem(files: SigningFiles, broker_id: int | None = 7) -> FileProblem:
    with pytest.raises(FileProblem) as caught:
        FileSigner(files, broker_id)
    return caught.value


def test_a_certificate_of_another_broker_is_refused_with_the_wanted_name(authority: Authority) -> None:
    files = authority.issue("kquota://*/agent/8")
    found = problem(files)
    assert found.file == files.certificate
    assert "names kquota://*/agent/8" in found.wrong
    assert "kquota://*/agent/7" in found.allowed
    assert FileSigner(files, 8).names == ("kquota://*/agent/8",)
    assert FileSigner(files).names == ("kquota://*/agent/8",), "an operator's may be anybody's"


def test_a_certificate_without_a_name_is_refused(authority: Authority) -> None:
    assert "names no kquota:// URI" in problem(authority.issue()).wrong


def test_a_key_of_another_certificate_is_refused(authority: Authority) -> None:
    files = authority.issue(AGENT_7)
    other = authority.issue(AGENT_7, name="other")
    mixed = SigningFiles(files.certificate, other.key, files.authorities)
    assert problem(mixed).file == other.key
    assert str(files.certificate) in problem(mixed).allowed


def test_an_rsa_key_is_refused(authority: Authority) -> None:
    assert "Ed25519 or an EC key" in problem(authority.issue(AGENT_7, algorithm="RSA")).allowed


@pytest.mark.parametrize("which", ["certificate", "key"])
@pytest.mark.parametrize("content", [None, "garbage"])
def test_a_file_that_cannot_be_read_is_named(authority: Authority, which: str, content: str | None) -> None:
    files = authority.issue(AGENT_7)
    file: Path = getattr(files, which)
    if content is None:
        file.unlink()
    else:
        file.write_text(content, "utf-8")
    assert problem(files).file == file


def test_an_encrypted_key_needs_its_password(authority: Authority) -> None:
    files = authority.issue(AGENT_7, password="secret")
    assert FileSigner(files, 7).sign(b"message")
    for password in (None, "another"):
        wrong = SigningFiles(files.certificate, files.key, files.authorities, password)
        assert problem(wrong).file == files.key


def test_a_password_that_is_not_needed_does_no_harm(authority: Authority) -> None:
    files = authority.issue(AGENT_7)
    assert FileSigner(SigningFiles(files.certificate, files.key, files.authorities, "secret"), 7)


def test_rotated_files_are_taken_up_and_those_that_do_not_fit_are_not(authority: Authority) -> None:
    signer = FileSigner(authority.issue(AGENT_7), 7)
    former = signer.certificate
    authority.issue("kquota://*/agent/8")
    signer.refresh()
    assert signer.certificate == former
    assert "agent/8" in str(signer.problem)
    authority.issue(AGENT_7)
    signer.refresh()
    assert signer.certificate != former
    assert signer.problem is None
    issued = AuthorityFile(authority.file).certificate(signer.certificate)
    assert issued is not None
    assert issued.verifies(signer.sign(b"message"), b"message")


def test_a_doubt_is_what_readers_would_refuse(tmp_path: Path, authority: Authority) -> None:
    files = authority.issue(AGENT_7)
    signer = FileSigner(files, 7)
    assert signer.doubt(NOW) is None
    assert "is not valid now" in str(signer.doubt(NOW + timedelta(days=2)))
    assert "is not valid now" in str(signer.doubt(NOW - timedelta(days=2)))
    Authority(tmp_path, name="another")
    assert str(signer.doubt(NOW)) == f"no authority in {files.authorities} has issued {files.certificate}"
    files.authorities.write_text("garbage", "utf-8")
    assert "can't be used" in str(signer.doubt(NOW))
