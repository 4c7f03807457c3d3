"""TLS of the metrics endpoint, by its web configuration, which is read again whenever it changes."""

from __future__ import annotations

import logging
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path

from kquota.settings.problems import Problem, SettingsError
from kquota.settings.web_config import TlsSection, WebConfig, read_web_config

_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_CLIENTS = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_log = logging.getLogger("kquota")
_Seen = tuple[tuple[str, int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """The rules for a connection: TLS, or None for plain HTTP."""

    tls: ssl.SSLContext | None = None


class WebAccess:
    """The web configuration as it is now; for use by several threads."""

    def __init__(self, path: Path | None) -> None:
        """Read the file at ``path``; None admits every client by plain HTTP."""
        self._path = path
        self._lock = threading.Lock()
        self._files: tuple[Path, ...] = () if path is None else (path,)
        self._seen: _Seen | None = None
        self._access: Access | None = Access()
        self.current()

    def current(self) -> Access | None:
        """Return the rules in force; None while the configuration is bad: then no client is admitted."""
        if self._path is None:
            return self._access
        with self._lock:
            if _state_of(self._files) != self._seen:
                before = _state_of((self._path,))
                self._access = self._read(self._path)
                seen = _state_of(self._files)
                self._seen = seen if seen[:1] == before else None
            return self._access

    def _read(self, path: Path) -> Access | None:
        try:
            config = read_web_config(path)
            self._files = (path, *_files_of(config, path.parent))
            return _access(config, path)
        except SettingsError as error:
            for problem in error.problems:
                _log.error("metrics are not served: %s", problem)
            return None


def look_at_web_config(path: Path) -> None:
    """Look whether the endpoint can be served with the web configuration at ``path``.

    Raises:
        SettingsError: with every problem found.
    """
    _access(read_web_config(path), path)


def _access(config: WebConfig, path: Path) -> Access:
    section = config.tls_server_config
    try:
        return Access(None if section is None else _context(section, path.parent))
    except OSError as error:  # those of ssl, too
        wrong = f"can't be used: {error.strerror or error}"
        allowed = "a certificate, its key and, to verify clients, their authority, in PEM without a password"
        raise SettingsError([Problem(str(path), "tls_server_config", None, wrong, allowed)]) from None


def _files_of(config: WebConfig, directory: Path) -> tuple[Path, ...]:
    tls = config.tls_server_config
    named = () if tls is None else (tls.cert_file, tls.key_file, tls.client_ca_file)
    return tuple(directory / file for file in named if file is not None)


def _state_of(files: tuple[Path, ...]) -> _Seen:
    seen: list[tuple[str, int, int, int] | None] = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            seen.append(None)
        else:
            seen.append((str(file), status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(seen)


def _context(section: TlsSection, directory: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[section.min_version]
    # without a password OpenSSL would ask the terminal for one
    context.load_cert_chain(directory / section.cert_file, directory / section.key_file, password="")
    if section.client_ca_file is not None:
        context.load_verify_locations(directory / section.client_ca_file)
    context.verify_mode = _CLIENTS[section.client_auth_type]
    return context
