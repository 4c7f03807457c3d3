"""The owner of a certificate: it signs records with the key that belongs to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from kquota.formats.signature_headers import MAX_CERTIFICATE_BYTES, names_agent
from kquota.host.stamps import Stamp, stamp
from kquota.policy.timestamps import format_utc
from kquota.trust.authorities import has_issued, read_authorities
from kquota.trust.keys import ALLOWED_KEYS, uris, usable
from kquota.trust.live_file import FileProblem
from kquota.trust.revoked import fingerprint

PrivateKey = ec.EllipticCurvePrivateKey | Ed25519PrivateKey


@dataclass(frozen=True, slots=True)
class SigningFiles:
    """The PEM files of a signer; the first certificate of a chain is the signer's."""

    certificate: Path
    key: Path
    authorities: Path
    password: str | None = None


@dataclass(frozen=True, slots=True)
class _Identity:
    certificate: x509.Certificate
    der: bytes
    fingerprint: str
    names: tuple[str, ...]
    key: PrivateKey


class FileSigner:
    """Signs with the key and certificate in files, which are read again after they have changed.

    While they can't be used, those of before stay, and ``problem`` says why.
    """

    def __init__(self, files: SigningFiles, broker_id: int | None = None) -> None:
        """Read the files.

        Raises:
            FileProblem: they can't be used, or the certificate is not of that broker's agent.
        """
        self._files, self._broker_id = files, broker_id
        self.problem: str | None = None
        self._stamps = self._present()
        self._identity = self._read()

    @property
    def certificate(self) -> bytes:
        """The certificate in force, as DER."""
        return self._identity.der

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the certificate in force."""
        return self._identity.fingerprint

    @property
    def names(self) -> tuple[str, ...]:
        """The URIs among its subject alternative names."""
        return self._identity.names

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message."""
        key = self._identity.key
        if isinstance(key, Ed25519PrivateKey):
            return key.sign(message)
        return key.sign(message, ec.ECDSA(SHA256()))

    def refresh(self) -> None:
        """Take up files that have changed."""
        present = self._present()
        if present == self._stamps:
            return
        try:
            self._identity = self._read()
        except FileProblem as problem:
            self.problem = f"records are signed with the former certificate: {problem}"
            return
        self._stamps, self.problem = present, None

    def doubt(self, now: datetime) -> str | None:
        """Return why readers with the same authorities would refuse its records at that time."""
        certificate, files = self._identity.certificate, self._files
        if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
            first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
            return f"{files.certificate} is not valid now, but from {format_utc(first)} to {format_utc(last)}"
        try:
            authorities = read_authorities(files.authorities)
        except (OSError, ValueError) as error:
            return f"the authorities in {files.authorities} can't be used: {error}"
        if any(has_issued(authority, certificate) for authority in authorities):
            return None
        return f"no authority in {files.authorities} has issued {files.certificate}"

    def _present(self) -> tuple[Stamp, Stamp]:
        return stamp(self._files.certificate), stamp(self._files.key)

    def _read(self) -> _Identity:
        identity = _read(self._files)
        if self._broker_id is not None and not names_agent(identity.names, self._broker_id):
            names = ", ".join(identity.names) or "no kquota:// URI"
            wanted = (
                f"a subject alternative name URI:kquota://*/agent/{self._broker_id}, or with the cluster's id"
            )
            raise FileProblem(self._files.certificate, f"names {names}", wanted)
        return identity


class CertificateInFile(NamedTuple):
    """A certificate as DER, and its fingerprint; both are empty where there is none."""

    der: bytes
    fingerprint: str


def certificate_in(path: Path) -> CertificateInFile:
    """Return the first certificate in a PEM file; an empty one if it can't be read."""
    try:
        certificate = x509.load_pem_x509_certificates(path.read_bytes())[0]
        return CertificateInFile(certificate.public_bytes(Encoding.DER), fingerprint(certificate))
    except (OSError, ValueError):
        return CertificateInFile(b"", "")


_PEM = "a file in PEM that the agent can read"


def _read(files: SigningFiles) -> _Identity:
    try:
        certificate = x509.load_pem_x509_certificates(files.certificate.read_bytes())[0]
        names, public = uris(certificate), usable(certificate.public_key())
    except OSError as error:
        raise FileProblem(files.certificate, f"can't be read: {error.strerror}", _PEM) from None
    except ValueError:
        raise FileProblem(files.certificate, "holds no certificate", _PEM) from None
    key = _key(files)
    if public is None:
        raise FileProblem(files.certificate, "has a key of another algorithm", ALLOWED_KEYS)
    if key.public_key() != public:
        raise FileProblem(files.key, "does not belong to the certificate", f"the key of {files.certificate}")
    der = certificate.public_bytes(Encoding.DER)
    if len(der) > MAX_CERTIFICATE_BYTES:
        raise FileProblem(files.certificate, "is too large", f"at most {MAX_CERTIFICATE_BYTES} bytes of DER")
    return _Identity(certificate, der, fingerprint(certificate), names, key)


def _key(files: SigningFiles) -> PrivateKey:
    try:
        pem = files.key.read_bytes()
    except OSError as error:
        raise FileProblem(files.key, f"can't be read: {error.strerror}", _PEM) from None
    password = files.password.encode() if files.password and b"ENCRYPTED" in pem else None
    try:
        key = load_pem_private_key(pem, password)
    except (ValueError, TypeError):  # TypeError: a password is missing
        raise FileProblem(
            files.key, "holds no key that can be read, or its password is another", _PEM
        ) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey | Ed25519PrivateKey):
        raise FileProblem(files.key, "is of another algorithm", ALLOWED_KEYS)
    return key
