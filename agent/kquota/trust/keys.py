"""The algorithms of keys, and the names in a certificate.

Ed25519, and ECDSA with SHA-256 on the curve of the key: the roles' authority makes P-256.
"""

from __future__ import annotations

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

PublicKey = EllipticCurvePublicKey | Ed25519PublicKey
ALLOWED_KEYS = "an Ed25519 or an EC key"


def usable(key: CertificatePublicKeyTypes) -> PublicKey | None:
    """Return the key; None for one of another algorithm."""
    return key if isinstance(key, EllipticCurvePublicKey | Ed25519PublicKey) else None


def uris(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the URIs among a certificate's subject alternative names.

    Raises:
        ValueError: its extensions can't be read.
    """
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(names.get_values_for_type(x509.UniformResourceIdentifier))
