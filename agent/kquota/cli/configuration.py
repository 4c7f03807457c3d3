"""The common part of the commands that need the agent's configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from kquota.cli import exit_codes
from kquota.cli.output import fail
from kquota.disks.server_properties import BrokerProperties, BrokerPropertiesError, read_broker_properties
from kquota.settings import Settings, SettingsError, load

DEFAULT_CONFIG = Path("/etc/kquota/agent.yml")
ConfigOption = Annotated[Path, typer.Option("--config", help="The agent's configuration.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def settings_of(config: Path) -> Settings:
    """Load the configuration, or end with its problems."""
    try:
        return load(config.absolute(), os.environ)
    except SettingsError as error:
        fail(str(error), exit_codes.CONFIGURATION)


def broker_of(settings: Settings) -> BrokerProperties:
    """Read the broker's server.properties, or end with its problem."""
    try:
        return read_broker_properties(settings.broker.server_properties, settings.broker.node_id)
    except BrokerPropertiesError as error:
        fail(str(error), exit_codes.CONFIGURATION)


def broker_id_of(settings: Settings) -> int:
    """Return the id of the broker on this agent's host."""
    return settings.broker.node_id if settings.broker.node_id is not None else broker_of(settings).node_id
