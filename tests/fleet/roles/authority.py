"""An authority of the role kquota_tls, and what it has issued."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from cryptography import x509

ISSUE = (("kquota_tls", "install_authority"), ("kquota_tls", "install_key_pair"))
PASSPHRASE = "correct horse"


def variables_for(folder: Path) -> dict[str, object]:
    return {
        "kquota_tls_ca_dir": str(folder / "authority"),
        "kquota_tls_directory": str(folder / "etc/tls"),
        "kquota_tls_group": "root",
        "kquota_tls_ca_passphrase": PASSPHRASE,
    }


def chain(folder: Path) -> list[x509.Certificate]:
    """Return the certificates that the agent presents: its own, and those that lead to the root."""
    return x509.load_pem_x509_certificates((folder / "etc/tls/current/agent.pem").read_bytes())


def certificate(folder: Path) -> x509.Certificate:
    return chain(folder)[0]


def root(folder: Path) -> x509.Certificate:
    """The authority that the agent trusts."""
    return x509.load_pem_x509_certificate((folder / "etc/tls/ca.pem").read_bytes())


def verify(folder: Path) -> None:
    """Check the agent's chain, each certificate with the next one, and the last with the root."""
    presented = [*chain(folder), root(folder)]
    for signed, signer in pairwise(presented):
        signed.verify_directly_issued_by(signer)
