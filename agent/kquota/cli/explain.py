"""``kquota explain``: why producers are slowed right now, and what would end it."""

from __future__ import annotations

from typing import Annotated

import typer

from kquota.cli import exit_codes
from kquota.cli.cluster_look import look_at_cluster
from kquota.cli.configuration import DEFAULT_CONFIG, ConfigOption, broker_id_of, settings_of
from kquota.cli.local_state import broken_glass, disagreement, local_document
from kquota.display.status_view import observes


def explain(
    config: ConfigOption = DEFAULT_CONFIG,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the cluster.", min=0.1)] = 15.0,
) -> None:
    """Explain in two sentences why producers are slowed right now, and what would end it."""
    settings = settings_of(config)
    broker_id = broker_id_of(settings)
    with look_at_cluster(settings) as look:
        complete = look.wait(timeout)
        document = look.document()
    local = local_document(settings, broker_id)
    typer.echo(f"{document['sentence']}.")
    typer.echo(document["what_ends_it"])
    glass = broken_glass(document, local)
    if glass is not None:
        typer.echo(glass)
    elif document["state"] != "OPEN" and observes(local):
        typer.echo(f"Broker {broker_id}, on this host, only observes: it holds no producer.")
    otherwise = disagreement(document, local)
    if otherwise is not None:
        typer.echo(otherwise)
    for problem in document["problems"]:
        typer.echo(problem)
    if not complete:
        raise typer.Exit(exit_codes.FAILED)
