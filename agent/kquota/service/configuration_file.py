"""The agent's configuration, and the last good one, which answers a bad file at a restart.

The last good one is part of the state file, which the agent alone may read, since it may hold secrets.
Secrets given by the environment are not kept; they are taken from the environment of the day.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from kquota.guard.agent_state import FILE_NAME, AgentStateFile, GoodConfiguration
from kquota.settings import Settings, SettingsError, load_document, load_text
from kquota.settings.layers import ENV_PREFIX, read_text

_STATE_DIR_LINE = re.compile(r"""^state_dir:[ \t]*["']?(/[^"'#\s]*)""", re.MULTILINE)


class ConfigurationFile:
    """The configuration as it is now, and the last one that the agent ran with."""

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

    def good(self, settings: Settings) -> GoodConfiguration:
        """Return what is to be remembered of settings that the agent runs with."""
        return GoodConfiguration(str(self._path), settings.document)

    def last_good(self) -> Settings | None:
        """Return the configuration that was remembered last, or None at a first start."""
        for state in self._states():
            good, _ = _good_in(state)
            if good is not None and good.path == str(self._path):
                with suppress(SettingsError):
                    return load_document(good.document, self._path, self._environ)
        return None

    def was_good(self) -> bool:
        """Return whether the agent has ever run with this configuration file.

        The configuration of then may be of no use today, or damaged: still, this is no first start.
        """
        # The owner of a damaged file is unknown: it may well have belonged to this configuration.
        return any(
            is_damaged or (good is not None and good.path == str(self._path))
            for good, is_damaged in map(_good_in, self._states())
        )

    def _states(self) -> Iterable[Path]:
        """Return where the state file may be, the likeliest first, although the configuration is bad.

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


def _good_in(state: Path) -> tuple[GoodConfiguration | None, bool]:
    """Return what a state file has, and whether it is there and damaged."""
    try:
        found, problem = AgentStateFile(state).load()
        return found.good_configuration, problem is not None and bool(state.lstat())
    except OSError:
        return None, False
