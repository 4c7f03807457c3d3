"""The last good configuration: the answer to a bad file at a reload or restart.

Kept in the state directory, readable by the agent alone, since the text may hold secrets. Secrets given
by the environment are not kept; they are taken from the environment of the day.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from kquota.core.strict_json import InvalidJson, parse_json
from kquota.host.atomic import replace_file
from kquota.host.documents import read_as
from kquota.settings.kafka_options import is_secret
from kquota.settings.layers import ENV_PREFIX, RESERVED_VARIABLES, read_text
from kquota.settings.load import load_text
from kquota.settings.model import Settings
from kquota.settings.problems import SettingsError

FILE_NAME = "last-good-agent.json"
_MODE = 0o600
_MAX_BYTES = 4 * 1024 * 1024
_STATE_DIR_LINE = re.compile(r"""^state_dir:[ \t]*["']?(/[^"'#\s]*)""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Memory:
    """The content of the file: a configuration that was good, and the variables that were set then."""

    path: str
    sha256: str
    text: str
    environment: dict[str, str]


_MEMORY = TypeAdapter(_Memory)


@dataclass(frozen=True, slots=True)
class Unremembered:
    """A good configuration that is not in its file yet, and the reason."""

    file: Path
    data: bytes
    reason: str

    @property
    def sentence(self) -> str:
        """The failure in words."""
        return f"the good configuration can't be remembered in {self.file}: {self.reason}"

    def write(self) -> None:
        """Try again.

        Raises:
            OSError: the former one is still there.
        """
        replace_file(self.file, self.data, _MODE)


class ConfigurationFile:
    """The agent's configuration as it is now, and the last one that the agent ran with."""

    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        """Read nothing yet."""
        self._path, self._environ = path, environ
        self._text = ""
        self._settings: Settings | None = None

    def load(self) -> Settings:
        """Read the configuration.

        Raises:
            SettingsError: it is bad.
        """
        self._text, self._settings = "", None
        self._text = read_text(self._path)
        self._settings = load_text(self._text, self._path, self._environ)
        return self._settings

    def remember(self) -> Unremembered | None:
        """Store the last configuration read as good, in its ``state_dir``; return it if that fails."""
        if self._settings is None:
            return None
        variables = {
            name: value
            for name, value in self._environ.items()
            if name.startswith(ENV_PREFIX)
            and name not in RESERVED_VARIABLES
            and not _holds_secret(name, value)
        }
        memory = _Memory(str(self._path), _digest(self._text), self._text, variables)
        file = self._settings.state_dir / FILE_NAME
        data = json.dumps({"schema_version": 1} | asdict(memory), indent=1).encode() + b"\n"
        try:
            if not file.is_file() or file.read_bytes() != data:
                replace_file(file, data, _MODE)
        except OSError as error:
            return Unremembered(file, data, error.strerror or str(error))
        return None

    def last_good(self) -> Settings | None:
        """Return the configuration that was remembered last, or None at a first start.

        It is read under today's environment, or else under that of its own day.
        """
        today = {
            name: value
            for name, value in self._environ.items()
            if not name.startswith(ENV_PREFIX) or _holds_secret(name, value)
        }
        for file in self._files():
            memory = _memory(file)
            if memory is None or memory.path != str(self._path) or memory.sha256 != _digest(memory.text):
                continue
            for environ in (self._environ, today | memory.environment):
                with suppress(SettingsError):
                    return load_text(memory.text, self._path, environ)
        return None

    def was_good(self) -> bool:
        """Return whether the agent has ever run with this configuration file.

        The configuration of then may be of no use today, or damaged: still, this is no first start.
        """
        memories = [_memory(file) for file in self._files() if _exists(file)]
        # The owner of a damaged file is unknown: it may well have belonged to this configuration.
        return any(memory is None or memory.path == str(self._path) for memory in memories)

    def _files(self) -> Iterable[Path]:
        """Return where the last good configuration may be, the likeliest first, although this one is bad.

        The change that made it bad may have named another directory, too.
        """
        line = _STATE_DIR_LINE.search(self._text)
        named = (
            None if self._settings is None else self._settings.state_dir,
            self._environ.get(f"{ENV_PREFIX}STATE_DIR"),
            line[1] if line else None,
            self._environ.get("STATE_DIRECTORY", "").split(":")[0],  # set by systemd's StateDirectory=
            Settings.model_fields["state_dir"].default,
        )
        return dict.fromkeys(Path(directory, FILE_NAME) for directory in named if directory)


def _exists(file: Path) -> bool:
    with suppress(OSError):
        return bool(file.lstat())
    return False


def _memory(file: Path) -> _Memory | None:
    try:
        return read_as(_MEMORY, parse_json(file.read_bytes(), _MAX_BYTES))
    except (OSError, InvalidJson):
        return None


def _holds_secret(name: str, value: str) -> bool:
    if name.removeprefix(ENV_PREFIX) == "KAFKA":  # the whole section as JSON
        return is_secret(value.replace('"', " "))
    return name.startswith(f"{ENV_PREFIX}KAFKA__") and is_secret(name.replace("_", "."))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
