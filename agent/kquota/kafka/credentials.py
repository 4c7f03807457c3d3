"""The files a connection authenticates with: noticing that they were rotated, and until when our
certificate is valid.

librdkafka reads them once, when a client is built. A rotated certificate needs a new client, so the files
are watched.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf

from kquota.host.stamps import Stamp, stamp

FILE_PROPERTIES = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.keystore.location",
    "ssl.crl.location",
)
"""The properties that name files (or a directory of authorities) read when a client is built."""

AGAIN_SECONDS = 60.0
"""When a certificate is read again for which no process could be had."""

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


class CredentialFiles:
    """The credential files that the operator's properties name."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        named = ((name, properties.get(name)) for name in FILE_PROPERTIES)
        self._paths = {name: path for name, path in named if path and path != "probe"}
        self._inline = properties.get("ssl.certificate.pem")
        self._keystore_password = properties.get("ssl.keystore.password")

    def stamps(self) -> tuple[Stamp, ...]:
        """The present state of all files; it differs from an earlier one when a file was replaced or
        rewritten, or its permissions were changed.
        """
        return tuple(stamp(path) for path in self._paths.values())

    def refusal(self, text: str) -> str:
        """Return which file keeps a client from being built, and why, with librdkafka's text or our own."""
        named = [(name, path) for name, path in self._paths.items() if name in text]
        cause = next((f"kafka.{name}: {path}: {text}" for name, path in named), text)
        for name, path in self._paths.items():
            try:
                os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            except OSError as error:
                cause = f"kafka.{name}: {path}: {error.strerror}"
                break
        return (
            f"The credential files cannot be used ({cause}): let the agent's user read a good file there;"
            " it is read again."
        )

    def client_certificate(self) -> ClientCertificate | None:
        """Our own certificate, or None without one or if it cannot be read (the client has the reason)."""
        order = self._order()
        return None if order is None else _READER.read(self.stamps(), order)

    def _order(self) -> dict[str, str | None] | None:
        if self._inline is not None:
            return {"pem": self._inline}
        path = self._paths.get("ssl.certificate.location")
        if path is not None:
            return {"file": path, "form": "pem"}
        path = self._paths.get("ssl.keystore.location")
        return None if path is None else {"file": path, "form": "pkcs12", "password": self._keystore_password}


class CertificateReader:
    """Reads the certificate in a process of its own, `certificate_process`, once for each state of the files.

    All clients have the same files: the first one that asks reads, and the others wait for its answer. A
    process that could not be had, or did not answer, says nothing about the files, and they are read again.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._asked: object = None
        self._found: ClientCertificate | None = None
        self._again_at = 0.0

    def read(self, stamps: tuple[Stamp, ...], order: Mapping[str, str | None]) -> ClientCertificate | None:
        """Return the certificate, or None where there is none or it can't be read now."""
        with self._lock:
            if (stamps, order) != self._asked or self._clock() >= self._again_at:
                self._asked, self._again_at, self._found = (stamps, order), inf, None
                try:
                    self._found = _read(order)
                except (OSError, subprocess.TimeoutExpired):
                    self._again_at = self._clock() + AGAIN_SECONDS
            return self._found


_READER = CertificateReader()


def _read(order: Mapping[str, str | None]) -> ClientCertificate | None:
    """Return the certificate; None where there is none.

    Raises:
        OSError, subprocess.TimeoutExpired: there is no process for it, or it was killed or did not answer.
    """
    # Passwords go by the pipe: command line and environment can be seen by others.
    done = subprocess.run(
        [sys.executable, "-I", "-m", "kquota.kafka.certificate_process"],
        input=json.dumps(order),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
        cwd="/",
        timeout=_READ_SECONDS,
    )
    if done.returncode < 0:
        raise ChildProcessError(f"it ended by signal {-done.returncode}")
    told = json.loads(done.stdout) if done.returncode == 0 else None
    if told is None:
        return None
    return ClientCertificate(
        path=order.get("file") or "ssl.certificate.pem",
        subject=told["subject"],
        not_before=datetime.fromisoformat(told["not_before"]),
        not_after=datetime.fromisoformat(told["not_after"]),
    )
