"""The authorities of a file, the certificates that they have issued, and which of these are revoked.

A certificate counts if an authority of the file has issued it itself: intermediate authorities belong into
the file. Of a certificate only its names, its validity and its key count, not its key usage.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from kquota.trust.keys import PublicKey, uris, usable
from kquota.trust.live_file import LiveFile
from kquota.trust.revoked import fingerprint, revoked_in

# Verified certificates are kept: to verify one takes longer than a record. Strangers can take no place.
# Of those that were refused only a hash is kept: they are a stranger's, as many and as large as it likes.
MAX_CERTIFICATES = 16_384
_NONE: frozenset[str] = frozenset()
_ALLOWED = "a file in PEM with authorities"


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A certificate of one of our authorities; valid only where both are."""

    fingerprint: str
    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    key: PublicKey
    authority_end: datetime

    def is_valid_at(self, at: datetime) -> bool:
        """Return whether it and its authority are valid at that time."""
        return self.not_before <= at <= self.not_after

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Return whether its owner has signed the message."""
        try:
            if isinstance(self.key, ec.EllipticCurvePublicKey):
                self.key.verify(signature, message, ec.ECDSA(SHA256()))
            else:
                self.key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


class AuthorityFile:
    """The authorities in a PEM file, and the list of revoked certificates, if there is one.

    Both are read again within a second after they have changed. While one can't be read, its content of
    before stays, and ``problems`` has the reason.
    """

    def __init__(
        self, path: Path, clock: Callable[[], float] = time.monotonic, *, revoked: Path | None = None
    ) -> None:
        """Read the files.

        Raises:
            FileProblem: one can't be used.
        """
        self._file = LiveFile(path, read_authorities, _ALLOWED, clock)
        self._list = None if revoked is None else revoked_in(revoked, clock)
        self._issued: dict[bytes, IssuedCertificate] = {}
        self._refused: set[bytes] = set()
        self._authorities = self._file.content()

    @property
    def problems(self) -> Iterator[str]:
        """Why a file could not be read again."""
        if self._file.problem is not None:
            yield f"the authorities of before stay in force: {self._file.problem}"
        if self._list is not None and self._list.problem is not None:
            yield f"the revoked certificates of before stay in force: {self._list.problem}"

    def revoked(self) -> frozenset[str]:
        """Return the fingerprints of the revoked certificates: the same object until the list has changed."""
        return _NONE if self._list is None else self._list.content()

    def authority_end(self, der: bytes) -> datetime | None:
        """Return when the authority that has issued a certificate ends; None where none of them has."""
        issued = self.certificate(der)
        return None if issued is None else issued.authority_end

    def knows(self, der: bytes) -> bool:
        """Return whether a certificate was verified or refused since the authorities have changed."""
        self._follow_file()
        return der in self._issued or hashlib.sha256(der).digest() in self._refused

    def certificate(self, der: bytes) -> IssuedCertificate | None:
        """Return the certificate; None where none of the authorities has issued it."""
        self._follow_file()
        known = self._issued.get(der)
        if known is not None:
            return known
        mark = hashlib.sha256(der).digest()
        if mark in self._refused:
            return None
        issued = _issued(der, self._authorities)
        if issued is None:
            if len(self._refused) >= MAX_CERTIFICATES:
                self._refused.clear()
            self._refused.add(mark)
        else:
            if len(self._issued) >= MAX_CERTIFICATES:
                self._issued.clear()
            self._issued[der] = issued
        return issued

    def _follow_file(self) -> None:
        authorities = self._file.content()
        if authorities is not self._authorities:
            self._authorities = authorities
            self._issued.clear()
            self._refused.clear()


def read_authorities(path: Path) -> tuple[x509.Certificate, ...]:
    """Return the authorities in a PEM file; other certificates in it are left out.

    Raises:
        OSError: the file can't be read.
        ValueError: there is no authority in it.
    """
    authorities = tuple(one for one in x509.load_pem_x509_certificates(path.read_bytes()) if _may_issue(one))
    if not authorities:
        raise ValueError("no certificate in it is an authority's")
    return authorities


def _may_issue(certificate: x509.Certificate) -> bool:
    extensions = certificate.extensions
    try:
        is_authority = extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False
    try:
        return is_authority and extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound:
        return is_authority


def _issued(der: bytes, authorities: tuple[x509.Certificate, ...]) -> IssuedCertificate | None:
    """Return a certificate that one of the authorities has issued; whatever the bytes, it never raises.

    Nothing else in it is read before an authority's signature: a stranger's costs one verification, and not
    a thousand names.
    """
    try:
        certificate = x509.load_der_x509_certificate(der)
        authority = next((one for one in authorities if has_issued(one, certificate)), None)
        if authority is None:
            return None
        key, names = usable(certificate.public_key()), uris(certificate)
    except Exception:  # the library raises many errors of its own for what strangers send
        return None
    if key is None:
        return None
    return IssuedCertificate(
        fingerprint(certificate),
        names,
        max(certificate.not_valid_before_utc, authority.not_valid_before_utc),
        min(certificate.not_valid_after_utc, authority.not_valid_after_utc),
        key,
        authority.not_valid_after_utc,
    )


def has_issued(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    """Return whether an authority has issued a certificate itself."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
