"""A certificate authority for one cluster, and PEM files for its brokers and clients."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ORGANIZATION = "kquota"
_CLOCK_TOLERANCE = timedelta(hours=1)


@dataclass(frozen=True)
class Identity:
    """A certificate with its key, as PEM files; `keystore` holds both, which is what Kafka reads."""

    principal: str
    """The Kafka principal, e.g. `User:CN=kquota-agent-1,O=kquota`."""
    certificate: Path
    key: Path
    keystore: Path


class CertificateAuthority:
    """Signs identities whose subject is `CN=<common name>,O=kquota`, valid for 127.0.0.1 and localhost."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject("kquota-demo-ca")
        now = datetime.now(UTC)
        certificate = (
            _builder(
                self._name,
                self._name,
                self._key.public_key(),
                now - _CLOCK_TOLERANCE,
                now + timedelta(days=2),
            )
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        directory.mkdir(parents=True, exist_ok=True)
        self.certificate = directory / "ca.pem"
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(
        self, common_name: str, *, lifetime: timedelta = timedelta(days=1), uris: Sequence[str] = ()
    ) -> Identity:
        """Write a new certificate and key for that name, over an older one if there is one (rotation).

        A negative lifetime gives a certificate that has already expired. `uris` name its owner.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        hosts = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
        names = [x509.UniformResourceIdentifier(uri) for uri in uris]
        not_after = datetime.now(UTC) + lifetime
        certificate = (
            _builder(
                _subject(common_name), self._name, key.public_key(), not_after - timedelta(days=30), not_after
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([*hosts, *names]), critical=False)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        certificate_pem = certificate.public_bytes(serialization.Encoding.PEM)
        key_pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        identity = Identity(
            principal=principal_of(common_name),
            certificate=self._directory / f"{common_name}.pem",
            key=self._directory / f"{common_name}.key",
            keystore=self._directory / f"{common_name}.keystore.pem",
        )
        identity.certificate.write_bytes(certificate_pem)
        for path, content in ((identity.key, key_pem), (identity.keystore, key_pem + certificate_pem)):
            path.touch(mode=0o600)
            path.write_bytes(content)
        return identity


def principal_of(common_name: str) -> str:
    """The Kafka principal of the identity of that name."""
    return f"User:CN={common_name},O={ORGANIZATION}"


def _subject(common_name: str) -> x509.Name:
    # Kafka prints the name in RFC 2253 order, that is reversed: CN=…,O=…
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    not_before: datetime,
    not_after: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(not_before)
        .not_valid_after(not_after)
    )
