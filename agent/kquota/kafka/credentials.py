"""The files a connection authenticates with: noticing that they were rotated, and until when our
certificate is valid.

librdkafka reads them once, when a client is built. A rotated certificate needs a new client, so the files
are watched.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

FILE_PROPERTIES = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.keystore.location",
    "ssl.crl.location",
)
"""The properties that name files (or a directory of authorities) read when a client is built."""
_READ_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """Our own certificate: its file, its subject (RFC 4514) and its validity in UTC."""

    path: str
    subject: str
    not_before: datetime
    not_after: datetime

    def has_expired(self, now: datetime) -> bool:
        """Whether the certificate is past its validity at `now` (an aware time)."""
        return now > self.not_after


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Identity of a file's content, and of its readers, as far as the file system shows it; `mtime_ns` is
    None for an absent file.
    """

    path: str
    mtime_ns: int | None
    ctime_ns: int
    size_bytes: int
    inode: int


class CredentialFiles:
    """The credential files that the operator's properties name."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        named = ((name, properties.get(name)) for name in FILE_PROPERTIES)
        self._paths = {name: path for name, path in named if path and path != "probe"}
        self._inline = properties.get("ssl.certificate.pem")
        self._keystore_password = properties.get("ssl.keystore.password")
        self._read: tuple[tuple[FileStamp, ...], ClientCertificate | None] | None = None

    def stamps(self) -> tuple[FileStamp, ...]:
        """The present state of all files; it differs from an earlier one when a file was replaced or
        rewritten, or its permissions were changed.
        """
        return tuple(_stamp(path) for path in self._paths.values())

    def client_certificate(self) -> ClientCertificate | None:
        """Our own certificate, or None without one or if it cannot be read (the client has the reason)."""
        stamps = self.stamps()
        if self._read is None or self._read[0] != stamps:
            self._read = (stamps, _certificates.read(stamps, self._order()))
        return self._read[1]

    def _order(self) -> dict[str, str | None] | None:
        if self._inline is not None:
            return {"pem": self._inline}
        path = self._paths.get("ssl.certificate.location")
        if path is not None:
            return {"file": path, "form": "pem"}
        path = self._paths.get("ssl.keystore.location")
        return None if path is None else {"file": path, "form": "pkcs12", "password": self._keystore_password}


class _Certificates:
    """Reads certificates in a process of its own, see `certificate_process`; clients share the results."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[object, ClientCertificate | None] | None = None

    def read(
        self, stamps: tuple[FileStamp, ...], order: Mapping[str, str | None] | None
    ) -> ClientCertificate | None:
        """The certificate, or None without one or when it cannot be read."""
        if order is None:
            return None
        with self._lock:
            what = (stamps, dict(order))
            if self._last is None or self._last[0] != what:
                self._last = (what, _read(order))
            return self._last[1]


_certificates = _Certificates()


def _read(order: Mapping[str, str | None]) -> ClientCertificate | None:
    command = [sys.executable, "-I", "-m", "kquota.kafka.certificate_process"]
    try:
        # Passwords go by the pipe: command line and environment can be seen by others.
        done = subprocess.run(
            command,
            input=json.dumps(order),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
            cwd="/",
            timeout=_READ_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    told = json.loads(done.stdout) if done.returncode == 0 else None
    if told is None:
        return None
    return ClientCertificate(
        path=order.get("file") or "ssl.certificate.pem",
        subject=told["subject"],
        not_before=datetime.fromisoformat(told["not_before"]),
        not_after=datetime.fromisoformat(told["not_after"]),
    )


def _stamp(path: str) -> FileStamp:
    try:
        # Rotation by a symbolic link is seen too: stat follows it.
        found = Path(path).stat()
    except OSError:
        return FileStamp(path, None, 0, 0, 0)
    return FileStamp(path, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
