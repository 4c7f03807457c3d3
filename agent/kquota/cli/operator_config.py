"""The operator's own client properties: no order is given with an agent's credentials."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import javaproperties
import typer

from kquota.cli import exit_codes
from kquota.cli.output import fail
from kquota.settings import Settings
from kquota.settings.kafka_options import OWNED_NAMES, KafkaOptions, has_credentials
from kquota.trust.signing import OperatorFiles

DEFAULT_COMMAND_CONFIG = Path("/etc/kquota/operator.properties")
CommandConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        help=f"The operator's client properties, by default {DEFAULT_COMMAND_CONFIG}; for root alone.",
    ),
]
_SIGNING = ("kquota.signing.certificate", "kquota.signing.key", "kquota.signing.key.password")
_LARGEST_BYTES = 128 * 1024
_ROOT = 0


@dataclass(frozen=True, slots=True)
class OperatorConfig:
    """How an operator connects to the cluster, and signs."""

    options: KafkaOptions
    files: OperatorFiles | None
    path: Path


def operator_config(path: Path | None, settings: Settings) -> OperatorConfig:
    """Read the operator's client properties, or end with what is wrong with them.

    Without the file an agent's connection is used if it needs no credentials.
    """
    agents = settings.librdkafka()
    wanted = DEFAULT_COMMAND_CONFIG if path is None else path
    if path is None and not wanted.exists() and not has_credentials(agents):
        return OperatorConfig(agents, None, wanted)
    found = _read(wanted, settings)
    for name in found:
        if name in OWNED_NAMES:
            fail(f"{wanted}: {name} is set by kquota itself: leave it out", exit_codes.CONFIGURATION)
        if name.startswith("kquota.") and name not in _SIGNING:
            known = ", ".join(_SIGNING)
            fail(f"{wanted}: {name} is no known key; allowed: {known}", exit_codes.CONFIGURATION)
    options = {name: value for name, value in found.items() if name not in _SIGNING}
    options.setdefault("bootstrap.servers", agents.get("bootstrap.servers", ""))
    certificate, key, password = (found.get(name) for name in _SIGNING)
    certificate = certificate or found.get("ssl.certificate.location")
    key = key or found.get("ssl.key.location")
    files = None
    if certificate and key:
        password = password or found.get("ssl.key.password")
        files = OperatorFiles(Path(certificate), Path(key), password)
    return OperatorConfig(KafkaOptions(options), files, wanted)


def _read(path: Path, settings: Settings) -> dict[str, str]:
    try:
        with path.open("rb") as stream:
            status = os.fstat(stream.fileno())
            content = stream.read(_LARGEST_BYTES + 1)
    except FileNotFoundError:
        fail(
            f"{path} does not exist, and the agent's credentials are not an operator's: create it with mode"
            " 0600, with librdkafka's properties (security.protocol, …) of an operator who may write to topic"
            f" {settings.topics.orders.name}, or name another file by --command-config",
            exit_codes.CONFIGURATION,
        )
    except OSError as error:
        fail(f"{path} can't be read: {error.strerror}", exit_codes.CONFIGURATION)
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077 or status.st_uid not in (_ROOT, os.geteuid()):
        fail(
            f"{path} has mode {mode:04o} and owner {status.st_uid}: only root, or you, may own an operator's"
            " credentials and read them (chmod 600, chown root)",
            exit_codes.CONFIGURATION,
        )
    try:
        if len(content) > _LARGEST_BYTES:
            raise ValueError
        return dict(javaproperties.loads(content))
    except ValueError:
        fail(f"{path} is no properties file", exit_codes.CONFIGURATION)
