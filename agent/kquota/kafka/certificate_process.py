"""The program that reads a client certificate, in a process of its own because what parses one is large.

`cryptography` takes ten megabytes, for a few lines that are wanted when an agent starts and when its
certificate is rotated. Run by `credentials.py` as ``python -I -m kquota.kafka.certificate_process``.

One JSON object on stdin: `pem` (text), or `file` with `form` ("pem" or "pkcs12") and `password` (text or
null). One on stdout: `subject` (RFC 4514), `not_before` and `not_after` (ISO 8601, UTC); or null for a
keystore without a certificate.
"""

import json
import sys
from datetime import UTC
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import pkcs12


def read(order: dict[str, str | None]) -> dict[str, str] | None:
    """Read the requested certificate.

    Raises:
        OSError: the file can't be read.
        ValueError: there is no certificate in it, or the password is another one.
    """
    certificate = _load(order)
    if certificate is None:
        return None
    return {
        "subject": certificate.subject.rfc4514_string(),
        "not_before": certificate.not_valid_before_utc.astimezone(UTC).isoformat(),
        "not_after": certificate.not_valid_after_utc.astimezone(UTC).isoformat(),
    }


def _load(order: dict[str, str | None]) -> x509.Certificate | None:
    pem, file = order.get("pem"), order.get("file")
    if pem is not None:
        return x509.load_pem_x509_certificate(pem.encode())
    content = Path(file or "").read_bytes()
    if order.get("form") == "pkcs12":
        password = order.get("password")
        return pkcs12.load_key_and_certificates(content, password.encode() if password else None)[1]
    # Of a chain the first certificate is ours.
    return x509.load_pem_x509_certificates(content)[0]


def main() -> int:
    """Answer one order; exit code 1 where there is nothing to read."""
    try:
        answer = read(json.load(sys.stdin))
    except (OSError, ValueError):
        return 1
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
