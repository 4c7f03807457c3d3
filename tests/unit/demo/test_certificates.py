"""Certificates as Kafka and librdkafka want them."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from testbed.loopback.certificates import CertificateAuthority, principal_of


def test_the_subject_is_the_principal_that_kafka_will_see(tmp_path: Path) -> None:
    identity = CertificateAuthority(tmp_path).issue("kquota-agent-1")

    certificate = x509.load_pem_x509_certificate(identity.certificate.read_bytes())
    assert identity.principal == principal_of("kquota-agent-1") == "User:CN=kquota-agent-1,O=kquota"
    assert certificate.subject.rfc4514_string() == "CN=kquota-agent-1,O=kquota"


def test_keys_are_private_and_the_keystore_holds_both(tmp_path: Path) -> None:
    identity = CertificateAuthority(tmp_path).issue("a")

    for secret in (identity.key, identity.keystore):
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert identity.keystore.read_bytes() == identity.key.read_bytes() + identity.certificate.read_bytes()


def test_an_issued_certificate_is_signed_by_the_authority_and_can_be_rotated(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path)
    signer = x509.load_pem_x509_certificate(authority.certificate.read_bytes())

    first = x509.load_pem_x509_certificate(authority.issue("a").certificate.read_bytes())
    second = x509.load_pem_x509_certificate(authority.issue("a").certificate.read_bytes())

    first.verify_directly_issued_by(signer)
    second.verify_directly_issued_by(signer)
    assert first.serial_number != second.serial_number


def test_a_certificate_may_be_short_lived_or_expired(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path)

    short = x509.load_pem_x509_certificate(
        authority.issue("a", lifetime=timedelta(seconds=5)).certificate.read_bytes()
    )
    expired = x509.load_pem_x509_certificate(
        authority.issue("a", lifetime=timedelta(seconds=-5)).certificate.read_bytes()
    )

    now = datetime.now(UTC)
    assert now < short.not_valid_after_utc < now + timedelta(seconds=6)
    assert expired.not_valid_before_utc < expired.not_valid_after_utc < now
