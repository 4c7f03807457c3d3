"""``kquota explain``: why producers are slowed right now, and what would end it."""

from __future__ import annotations

from typing import Annotated

import typer

from kquota.cli import exit_codes
from kquota.cli.cluster_look import ClusterLook
from kquota.cli.configuration import DEFAULT_CONFIG, ConfigOption, settings_of
from kquota.cli.output import fail
from kquota.kafka.config import ConfigurationError


def explain(
    config: ConfigOption = DEFAULT_CONFIG,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the cluster.", min=0.1)] = 15.0,
) -> None:
    """Say in two sentences why producers are slowed right now, and what would end it."""
    try:
        look = ClusterLook(settings_of(config))
    except ConfigurationError as error:
        fail(str(error), exit_codes.CONFIGURATION)
    with look:
        complete = look.wait(timeout)
        for sentence in look.explanation():
            typer.echo(sentence)
        for problem in look.problems:
            typer.echo(problem)
    if not complete:
        raise typer.Exit(exit_codes.FAILED)
