"""Our own certificate, in each form that librdkafka accepts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)

from kquota.kafka.credentials import CredentialFiles
from testbed.loopback.certificates import CertificateAuthority, Identity


@pytest.fixture
def identity(tmp_path: Path) -> Identity:
    return CertificateAuthority(tmp_path / "certificates").issue("kquota-agent-1")


def credentials(**properties: str) -> CredentialFiles:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return CredentialFiles(named)


def test_a_pem_file_is_described(identity: Identity, tmp_path: Path) -> None:
    path = identity.certificate
    found = credentials(ssl_certificate_location=str(path)).client_certificate()
    expected = x509.load_pem_x509_certificates(path.read_bytes())[0]
    assert found is not None
    assert found.path == str(path)
    assert found.subject == expected.subject.rfc4514_string()
    assert (found.not_before, found.not_after) == (
        expected.not_valid_before_utc,
        expected.not_valid_after_utc,
    )


def test_of_a_chain_the_agent_s_own_certificate_is_described(identity: Identity, tmp_path: Path) -> None:
    issuer = CertificateAuthority(tmp_path / "issuer").certificate.read_text()
    path = tmp_path / "chain.pem"
    path.write_text(identity.certificate.read_text() + issuer)
    for properties in ({"ssl_certificate_location": str(path)}, {"ssl_certificate_pem": path.read_text()}):
        found = credentials(**properties).client_certificate()
        assert found is not None
        assert "kquota-agent-1" in found.subject


def test_a_certificate_given_as_text_is_described(identity: Identity, tmp_path: Path) -> None:
    found = credentials(ssl_certificate_pem=identity.certificate.read_text()).client_certificate()
    assert found is not None
    assert found.path == "ssl.certificate.pem"
    assert "kquota-agent-1" in found.subject


@pytest.mark.parametrize(("password", "readable"), [("secret", True), ("another", False)])
def test_a_keystore_is_opened_with_its_password(
    identity: Identity, tmp_path: Path, password: str, readable: bool
) -> None:
    key = load_pem_private_key(identity.key.read_bytes(), None)
    certificate = x509.load_pem_x509_certificates(identity.certificate.read_bytes())[0]
    keystore = tmp_path / "keystore.p12"
    keystore.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"agent",
            key,  # type: ignore[arg-type]
            certificate,
            None,
            BestAvailableEncryption(b"secret"),
        )
    )
    properties = {"ssl_keystore_location": str(keystore), "ssl_keystore_password": password}
    assert (credentials(**properties).client_certificate() is not None) is readable


def test_what_is_no_certificate_or_not_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "garbage.pem").write_text("garbage")
    for name in ("garbage.pem", "absent.pem"):
        assert credentials(ssl_certificate_location=str(tmp_path / name)).client_certificate() is None
    assert credentials().client_certificate() is None


def test_a_rotated_file_is_read_again(identity: Identity, tmp_path: Path) -> None:
    path = tmp_path / "rotated.pem"
    path.write_bytes(identity.certificate.read_bytes())
    files = credentials(ssl_certificate_location=str(path))
    first = files.client_certificate()
    path.write_bytes(
        CertificateAuthority(tmp_path / "other").issue("kquota-agent-2").certificate.read_bytes()
    )
    second = files.client_certificate()
    assert first is not None
    assert second is not None
    assert "kquota-agent-1" in first.subject
    assert "kquota-agent-2" in second.subject


def test_the_agent_does_not_load_what_parses_certificates() -> None:
    look = "import sys, kquota.service.daemon; sys.exit('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], check=False).returncode == 0
