"""The list of revoked certificates: a line for each, with the SHA-256 of its public key.

Of the key, because the holder of a certificate can change its bytes without its authority: an ECDSA signature
(r, s) is also valid as (r, n-s).
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kquota.trust.live_file import LiveFile

ALLOWED_LINES = (
    "lines with the SHA-256 fingerprint of a certificate's public key (64 hexadecimal digits without colons,"
    " as openssl x509 -noout -pubkey | openssl pkey -pubin -outform DER | openssl dgst -sha256 prints it),"
    " or a comment after #"
)
_LINE = re.compile(r"(?:(?:sha2-256|sha256)?\(stdin\)= )?([0-9a-f]{64})")
# A hundred thousand certificates, each with its comment.
_MAX_FILE_BYTES = 16 * 1_048_576


def revoked_in(path: Path, clock: Callable[[], float] = time.monotonic) -> LiveFile[frozenset[str]]:
    """Return a list that is read again after it has changed.

    Raises:
        FileProblem: it can't be used.
    """
    return LiveFile(path, read_revoked, ALLOWED_LINES, clock)


def fingerprint(certificate: x509.Certificate) -> str:
    """Return the SHA-256 of a certificate's public key, in the form of the list in memory."""
    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(key).hexdigest()


def read_revoked(path: Path) -> frozenset[str]:
    """Return the fingerprints in a list; an empty file revokes nothing.

    Raises:
        OSError: the file can't be read.
        ValueError: a line is no fingerprint; the text names the line.
    """
    if path.stat().st_size > _MAX_FILE_BYTES:
        raise ValueError(f"it has more than {_MAX_FILE_BYTES} bytes")
    found = set()
    lines = path.read_bytes().decode("utf-8", "replace").splitlines()
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip().lower()
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise ValueError(f"line {number}, {text[:80]!r}, is no fingerprint")
        found.add(match[1])
    return frozenset(found)
