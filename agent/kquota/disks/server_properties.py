"""Read what the agent needs from a broker's ``server.properties``, by the broker's own rules.

The broker loads the file as Java does: Latin-1 with ``\\uXXXX`` escapes, so a path with raw UTF-8
letters is, for both, the mis-decoded one. Overrides on the broker's command line can't be seen here: its
plug-in reports the log dirs that it runs with, or its process shows them (`broker_dirs.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import javaproperties

from kquota.host.locales import PATH_ALLOWED, path_problem

DEFAULT_LOG_DIR = "/tmp/kafka-logs"
LARGEST_FILE_BYTES = 128 * 1024
# Joining continued lines costs the square of their number: no real file comes near this.
MOST_CONTINUED_LINES = 1000
_LARGEST_NODE_ID = 2**31 - 1
_ROLES = ("broker", "controller")
# An unresolved reference to one of Kafka's configuration providers: ${provider:[path:]key}.
_REFERENCE = re.compile(r"\$\{[^}]*\}?")

# Java's String.trim() takes these away, and \s of its patterns matches no others: a no-break space stays.
_JAVA_BLANKS = "".join(map(chr, range(0x21)))
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_MOST_SHOWN = 300  # characters of a value in a message


class BrokerPropertiesError(ValueError):
    """A server.properties that can't be used; the text names the file, the key, the value and the rule."""


@dataclass(frozen=True, slots=True)
class BrokerProperties:
    """The node and its directories in a broker's configuration.

    ``log_dirs`` are the configured absolute paths of the data, in order, without a node's controller
    role alone (then empty). ``metadata_log_dir`` holds the KRaft metadata log; by default it is the
    first log dir. ``raw`` is every key and value of the file, secrets included: never log it.
    """

    path: Path
    node_id: int
    log_dirs: tuple[Path, ...]
    metadata_log_dir: Path | None
    process_roles: tuple[str, ...]
    raw: Mapping[str, str] = field(repr=False)

    @property
    def directories(self) -> tuple[Path, ...]:
        """Every directory to watch: the log dirs, and the metadata log dir where it is another one."""
        metadata = self.metadata_log_dir
        return self.log_dirs if metadata is None or metadata in self.log_dirs else (*self.log_dirs, metadata)


def read_broker_properties(path: Path, node_id: int | None = None) -> BrokerProperties:
    """Read the file at ``path``; a ``node_id`` that is given counts, whether the file has one or not.

    Raises BrokerPropertiesError for a file that is missing, unreadable, too large or malformed, and
    for a value that the broker would refuse or that can't be judged from outside the broker.
    """
    return broker_properties_of(raw_properties(path), path, node_id)


def raw_properties(path: Path) -> Mapping[str, str]:
    """Return every key and value of the file at ``path``.

    Raises BrokerPropertiesError for a file that is missing, unreadable, too large or malformed.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        allowed = "the properties file that the broker was started with"
        raise BrokerPropertiesError(
            f"{path}: can't be read: {reason}; allowed in broker.server_properties: {allowed}"
        ) from error
    return _parse(content, path)


def parse_broker_properties(content: bytes, path: Path, node_id: int | None = None) -> BrokerProperties:
    """Parse the bytes of a server.properties; ``path`` is where they came from, for the messages."""
    return broker_properties_of(_parse(content, path), path, node_id)


def broker_properties_of(raw: Mapping[str, str], path: Path, node_id: int | None = None) -> BrokerProperties:
    """Judge the keys and values of a server.properties, and of overrides; raises BrokerPropertiesError."""
    return _Reading(path, MappingProxyType(dict(raw)), node_id).broker_properties()


def node_id_of(raw: Mapping[str, str], path: Path) -> int:
    """Return the node id among these keys and values; raises BrokerPropertiesError."""
    return _Reading(path, raw, None).read_node_id()


def _parse(content: bytes, path: Path) -> Mapping[str, str]:
    if len(content) > LARGEST_FILE_BYTES:
        raise BrokerPropertiesError(
            f"{path}: is larger than {LARGEST_FILE_BYTES} bytes; not a server.properties"
        )
    if b"\0" in content:
        raise BrokerPropertiesError(f"{path}: holds a NUL byte at offset {content.index(0)}; not a text file")
    if content.count(b"\\\n") + content.count(b"\\\r") > MOST_CONTINUED_LINES:
        raise BrokerPropertiesError(f"{path}: holds more than {MOST_CONTINUED_LINES} continued lines")
    try:
        return dict(javaproperties.loads(content))
    except javaproperties.InvalidUEscapeError as error:
        raise BrokerPropertiesError(
            f"{path}: invalid escape {error.escape!r}; allowed is \\u and four hexadecimal digits"
        ) from error


@dataclass(frozen=True, slots=True)
class _Reading:
    path: Path
    raw: Mapping[str, str]
    node_id: int | None

    def broker_properties(self) -> BrokerProperties:
        roles = self._roles()
        log_dirs_key = "log.dirs" if "log.dirs" in self.raw else "log.dir"
        log_dirs = self._directories(log_dirs_key)
        metadata_text = self._text("metadata.log.dir")
        metadata = log_dirs[0]
        if metadata_text is not None:
            metadata = self._directory("metadata.log.dir", metadata_text, metadata_text)
        return BrokerProperties(
            path=self.path,
            node_id=self.read_node_id(),
            log_dirs=log_dirs if "broker" in roles else (),
            metadata_log_dir=metadata,
            process_roles=roles,
            raw=self.raw,
        )

    def _text(self, key: str) -> str | None:
        """Return the trimmed value of a key that we need; a reference in it can't be resolved here."""
        value = self.raw.get(key)
        if value is None:
            return None
        if _REFERENCE.search(value):
            raise self._error(
                key, value, "holds a reference to a configuration provider; kquota needs the plain value"
            )
        return value.strip(_JAVA_BLANKS)

    def _roles(self) -> tuple[str, ...]:
        text = self._text("process.roles")
        if text is None:
            return ("broker",)
        roles = tuple(_COMMA.split(text))
        if any(role not in _ROLES for role in roles) or len(set(roles)) != len(roles):
            raise self._error("process.roles", text, "allowed are broker, controller, or both")
        return roles

    def read_node_id(self) -> int:
        found = {key: self._text(key) for key in ("node.id", "broker.id")}
        ids: dict[str, int] = {}
        for key, text in found.items():
            if text is None:
                continue
            # ASCII digits only: int() would take 1_000 and digits of other scripts, the broker would not.
            if not re.fullmatch(r"\+?[0-9]{1,18}", text, re.ASCII) or int(text) > _LARGEST_NODE_ID:
                raise self._error(key, text, f"allowed are whole numbers from 0 to {_LARGEST_NODE_ID}")
            ids[key] = int(text)
        if not ids and self.node_id is None:
            raise BrokerPropertiesError(
                f"{self.path}: node.id is missing (or broker.id, its older name); where the broker has it"
                " from its command line, set broker.node_id"
            )
        if len(set(ids.values())) > 1:
            raise self._error("broker.id", str(ids["broker.id"]), f"differs from node.id ({ids['node.id']})")
        return next(iter(ids.values())) if self.node_id is None else self.node_id

    def _directories(self, key: str) -> tuple[Path, ...]:
        text = self._text(key) if key in self.raw else DEFAULT_LOG_DIR
        assert text is not None
        directories: list[Path] = []
        # A broker of Kafka 4.0 or 4.1 drops what is empty, one of 4.4 what is the same; others do not start.
        entries = dict.fromkeys(entry for entry in _COMMA.split(text) if entry)
        for entry in entries or [""]:
            directory = self._directory(key, entry, text)
            if directory in directories:
                raise self._error(key, text, f"names {str(directory)[:_MOST_SHOWN]} twice")
            directories.append(directory)
        return tuple(directories)

    def _directory(self, key: str, entry: str, value: str) -> Path:
        if not entry:
            raise self._error(
                key, value, "holds an empty entry; allowed are absolute paths, separated by commas"
            )
        if not entry.startswith("/"):
            raise self._error(
                key,
                value,
                f"{_shown(entry)} is relative to the broker's working directory, which is unknown here; "
                "allowed are absolute paths",
            )
        try:
            encoded = entry.encode()
        except UnicodeEncodeError as error:
            raise self._error(key, value, "holds half of a surrogate pair, which no path can hold") from error
        if b"\0" in encoded:
            raise self._error(key, value, "holds a NUL character, which no path can hold")
        if (problem := path_problem(entry)) is not None:
            raise self._error(key, value, f"{problem}; allowed is {PATH_ALLOWED}")
        return Path(entry)

    def _error(self, key: str, value: str, rule: str) -> BrokerPropertiesError:
        return BrokerPropertiesError(f"{self.path}: {key} = {_shown(value)}: {rule}")


def _shown(text: str) -> str:
    """Return a text for a message: its beginning, where it is long."""
    return repr(text) if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]!r}…"
