"""An authority whose certificates and keys are in PEM files, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from kquota.trust.signer import SigningFiles

NOW = datetime(2026, 11, 20, 10, 15, 30, tzinfo=UTC)
_DAY = timedelta(days=1)


def new_key(algorithm: str = "P-256") -> Any:
    match algorithm:
        case "P-256":
            return ec.generate_private_key(ec.SECP256R1())
        case "P-384":
            return ec.generate_private_key(ec.SECP384R1())
        case "Ed25519":
            return ed25519.Ed25519PrivateKey.generate()
        case "RSA":
            return rsa.generate_private_key(65537, 2048)
    raise ValueError(algorithm)


class Authority:
    def __init__(
        self,
        directory: Path,
        *,
        name: str = "kquota authority",
        algorithm: str = "P-256",
        may_issue: bool = True,
        key_usage: x509.KeyUsage | None = None,
        valid: tuple[datetime, datetime] = (NOW - 9 * _DAY, NOW + 9 * _DAY),
        issuer: Authority | None = None,
    ) -> None:
        self.directory, self.key = directory, new_key(algorithm)
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer = issuer or self
        builder = self._builder(self.name, self.key.public_key(), issuer.name, *valid)
        constraints = x509.BasicConstraints(ca=may_issue, path_length=None)
        builder = builder.add_extension(constraints, critical=True)
        if key_usage is not None:
            builder = builder.add_extension(key_usage, critical=True)
        self.certificate = builder.sign(issuer.key, _hash(issuer.key))
        self.pem = self.certificate.public_bytes(Encoding.PEM)
        self.file = directory / "ca.pem"
        self.file.write_bytes(self.pem)

    def issue(
        self,
        *uris: str,
        algorithm: str = "P-256",
        valid: tuple[datetime, datetime] = (NOW - _DAY, NOW + _DAY),
        password: str | None = None,
        subject: str = "kquota-agent",
        name: str = "agent",
    ) -> SigningFiles:
        key = new_key(algorithm)
        names: Sequence[x509.GeneralName] = [x509.UniformResourceIdentifier(uri) for uri in uris]
        owner = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
        builder = self._builder(owner, key.public_key(), self.name, *valid)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self.key, _hash(self.key))
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        files = SigningFiles(
            self.directory / f"{name}.pem", self.directory / f"{name}.key", self.file, password
        )
        files.certificate.write_bytes(certificate.public_bytes(Encoding.PEM) + self.pem)
        files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
        return files

    @staticmethod
    def _builder(
        subject: x509.Name, key: Any, issuer: x509.Name, first: datetime, last: datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(first)
            .not_valid_after(last)
        )


def _hash(key: Any) -> hashes.HashAlgorithm | None:
    return None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()


def twisted(der: bytes) -> bytes:
    """The same certificate with (r, n - s) for its authority's signature on P-256, which is as valid."""
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    certificate = x509.load_der_x509_certificate(der)
    r, s = decode_dss_signature(certificate.signature)
    signature = encode_dss_signature(r, order - s)
    head = certificate.tbs_certificate_bytes
    algorithm = der[der.index(head) + len(head) : der.rindex(certificate.signature) - 3]
    bits = b"\x03" + bytes([len(signature) + 1]) + b"\x00" + signature
    body = head + algorithm + bits
    return b"\x30\x82" + len(body).to_bytes(2, "big") + body
