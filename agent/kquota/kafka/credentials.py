"""The files a connection authenticates with: noticing that they were rotated, and until when our
certificate is valid.

librdkafka reads them once, when a client is built. A rotated certificate needs a new client, so the files
are watched.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import pkcs12

from kquota.kafka.config import ClientProperties

FILE_PROPERTIES = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.keystore.location",
    "ssl.crl.location",
)
"""The properties that name files (or a directory of authorities) read when a client is built."""


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """What is known of our own certificate: its file, its subject (RFC 4514) and its validity in UTC."""

    path: str
    subject: str
    not_before: datetime
    not_after: datetime

    def has_expired(self, now: datetime) -> bool:
        """Whether the certificate is past its validity at `now` (an aware time)."""
        return now > self.not_after


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Identity of a file's content as far as the file system tells it; `mtime_ns` is None for an absent
    file.
    """

    path: str
    mtime_ns: int | None
    size_bytes: int
    inode: int


class CredentialFiles:
    """The credential files that the operator's properties name."""

    def __init__(self, properties: ClientProperties) -> None:
        named = ((name, properties.value(name)) for name in FILE_PROPERTIES)
        self._paths = {name: path for name, path in named if path and path != "probe"}
        self._inline = properties.value("ssl.certificate.pem")
        self._keystore_password = properties.value("ssl.keystore.password")
        self._read: tuple[tuple[FileStamp, ...], ClientCertificate | None] | None = None

    def stamps(self) -> tuple[FileStamp, ...]:
        """The present state of all files; it differs from an earlier one when a file was replaced or
        rewritten.
        """
        return tuple(_stamp(path) for path in self._paths.values())

    def client_certificate(self) -> ClientCertificate | None:
        """Our own certificate, or None without one or when it cannot be read (the client then says why)."""
        stamps = self.stamps()
        if self._read is None or self._read[0] != stamps:
            try:
                certificate = self._load()
            except (OSError, ValueError):
                certificate = None
            self._read = (stamps, certificate)
        return self._read[1]

    def _load(self) -> ClientCertificate | None:
        if self._inline is not None:
            return _described("ssl.certificate.pem", x509.load_pem_x509_certificate(self._inline.encode()))
        path = self._paths.get("ssl.certificate.location")
        if path is not None:
            # Of a chain the first certificate is ours.
            return _described(path, x509.load_pem_x509_certificates(Path(path).read_bytes())[0])
        path = self._paths.get("ssl.keystore.location")
        if path is None:
            return None
        password = self._keystore_password.encode() if self._keystore_password else None
        found = pkcs12.load_key_and_certificates(Path(path).read_bytes(), password)[1]
        return _described(path, found) if found is not None else None


def _stamp(path: str) -> FileStamp:
    try:
        # Rotation by a symbolic link is seen too: stat follows it.
        found = Path(path).stat()
    except OSError:
        return FileStamp(path, None, 0, 0)
    return FileStamp(path, found.st_mtime_ns, found.st_size, found.st_ino)


def _described(path: str, certificate: x509.Certificate) -> ClientCertificate:
    return ClientCertificate(
        path=path,
        subject=certificate.subject.rfc4514_string(),
        not_before=certificate.not_valid_before_utc.astimezone(UTC),
        not_after=certificate.not_valid_after_utc.astimezone(UTC),
    )
