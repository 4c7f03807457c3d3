"""The variables ``KQUOTA_A__B`` as pydantic-settings reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource

from kquota.settings.model import Settings


class EnvironmentSource(EnvSettingsSource):
    """Makes a document of our keys of the variables; the values of ``kafka`` stay text."""

    def __init__(self, environ: Mapping[str, str], prefix: str, delimiter: str) -> None:
        self._environ = environ
        super().__init__(
            cast("type[BaseSettings]", Settings),  # it asks the model for its fields alone
            env_prefix=prefix,
            env_nested_delimiter=delimiter,
            env_parse_none_str="null",
        )

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return {name.lower(): None if text == "null" else text for name, text in self._environ.items()}

    def explode_env_vars(
        self, field_name: str, field: FieldInfo, env_vars: Mapping[str, str | None]
    ) -> dict[str, Any]:
        """Return what the variables say below a field."""
        if field_name not in ("kafka", "kafka_secrets"):
            return super().explode_env_vars(field_name, field, env_vars)
        # Names of variables can't hold dots and librdkafka's hold no underscores. The values stay text: a
        # password such as 1e5 is no number.
        prefix = f"{self.env_prefix}{field_name}{self.env_nested_delimiter}".lower()
        return {
            name.removeprefix(prefix).replace("_", "."): text
            for name, text in env_vars.items()
            if name.startswith(prefix)
        }
