"""``kquota run``: the agent."""

from __future__ import annotations

import os

import typer

from kquota.cli.configuration import DEFAULT_CONFIG, ConfigOption


def run(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Run the agent, as its systemd unit does.

    Exit codes: 0 after SIGTERM, 78 for a bad configuration (if none was ever good), 1 for other failures.
    """
    from kquota.service.daemon import run as run_daemon  # noqa: PLC0415 - kept out of the other commands' start

    raise typer.Exit(run_daemon(config.absolute(), os.environ))
