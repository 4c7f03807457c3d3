"""The web configuration of the metrics endpoint, in the form of Prometheus' exporters.

Source: https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md. Keys of it that
we do not offer are refused: an option that protects must not be ignored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from kquota.settings.layers import FileLayer, read_text
from kquota.settings.load import problems_of
from kquota.settings.problems import Allowed, Finding, SettingsError, Value, refuse

ClientAuth = Annotated[
    Literal["NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"],
    Allowed("NoClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert"),
]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _file(value: object) -> Path:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError
    return Path(value)


_File = Annotated[Path, Value("a file", _file)]


class TlsSection(_Section):
    """How the endpoint proves who it is, and what it asks of clients; paths are from the file's directory."""

    cert_file: _File
    key_file: _File
    client_auth_type: ClientAuth = "NoClientCert"
    client_ca_file: Annotated[_File | None, Allowed("a file")] = None
    min_version: Annotated[Literal["TLS12", "TLS13"], Allowed("TLS12 or TLS13")] = "TLS12"

    @model_validator(mode="after")
    def _clients_are_asked_with_an_authority(self) -> Self:
        if (self.client_ca_file is None) != (self.client_auth_type == "NoClientCert"):
            allowed = "both client_ca_file and a client_auth_type that verifies, or neither"
            refuse([Finding(("client_auth_type",), "does not fit client_ca_file", allowed)])
        return self


class WebConfig(_Section):
    """TLS; without it the endpoint speaks plain HTTP."""

    tls_server_config: TlsSection | None = None


def read_web_config(path: Path) -> WebConfig:
    """Read the file at ``path``.

    Raises:
        SettingsError: with every problem found.
    """
    layer = FileLayer(path, read_text(path))
    try:
        return WebConfig.model_validate(layer.document)
    except ValidationError as error:
        raise SettingsError(problems_of(error, WebConfig, layer.source_of)) from None
