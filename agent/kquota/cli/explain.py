"""``kquota explain``: why producers are slowed right now, and what would end it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from kquota.cli import exit_codes
from kquota.cli.cluster_look import CLIENT_NAME, look_at_cluster
from kquota.cli.configuration import DEFAULT_CONFIG, ConfigOption, broker_id_of, settings_of
from kquota.cli.local_state import (
    broken_glass,
    cluster_topics,
    disagreement,
    exempt_sentence,
    local_document,
)
from kquota.cli.relief_inflow import measure_inflow
from kquota.cli.topic_sizes import expiry_sentence
from kquota.display.relief_view import inflow_text
from kquota.display.status_view import observes
from kquota.formats.sentences import bytes_to_free
from kquota.formats.warnings import printed
from kquota.guard.applied_state import AppliedScope, AppliedState, AppliedUnknown, read_applied_state
from kquota.host.boot_clock import BootClock
from kquota.kafka.admin import AdminConnection
from kquota.kafka.config import ClientProperties
from kquota.policy.decision import Mode, State
from kquota.policy.limit_breaches import Resource
from kquota.settings import Settings


def explain(
    config: ConfigOption = DEFAULT_CONFIG,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the cluster.", min=0.1)] = 15.0,
    client: Annotated[
        str | None, typer.Option(help="Also explain how this host's broker holds this client id or user.")
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="Also explain how producers to this topic are held.")
    ] = None,
) -> None:
    """Explain in two sentences why producers are slowed right now, and what would end it."""
    settings = settings_of(config)
    broker_id = broker_id_of(settings)
    with look_at_cluster(settings) as look:
        complete = look.wait(timeout)
        local = local_document(settings, broker_id)
        document = look.document(cluster_topics(local), topic)
    typer.echo(f"{document['sentence']}.")
    typer.echo(document["what_ends_it"])
    if (leaves := _leaving(settings, broker_id, document)) is not None:
        typer.echo(leaves)
    if (fills := _filling(settings, broker_id, document)) is not None:
        typer.echo(fills)
    if topic is not None:
        typer.echo(f"{document['topic_sentence']}.")
    if client is not None:
        applied = read_applied_state(settings.applied_file, BootClock().now(), broker_id=broker_id)
        typer.echo(client_sentence(client, applied, broker_id))
    glass = broken_glass(document, local)
    if glass is not None:
        typer.echo(glass)
    elif document["state"] != "OPEN" and observes(local):
        typer.echo(f"Broker {broker_id}, on this host, only observes: it holds no producer.")
    otherwise = disagreement(document, local)
    if otherwise is not None:
        typer.echo(otherwise)
    for warning in document["warnings"]:
        typer.echo(printed(warning))
    if document["state"] != "OPEN" and (exempt := exempt_sentence(local)) is not None:
        typer.echo(exempt)
    for problem in document["problems"]:
        typer.echo(problem)
    if not complete:
        raise typer.Exit(exit_codes.FAILED)


def _leaving(settings: Settings, broker_id: int, document: Mapping[str, Any]) -> str | None:
    """Return how much leaves by itself of what is to be freed, if a volume of this host decides."""
    if not document["reasons"]:
        return None
    first = document["reasons"][0]
    if first.get("resource") == Resource.INODES:  # what leaves is known in bytes
        return None
    margin = None if first["headroom"] > 0 else settings.release_margin_ratio
    size = bytes_to_free((first["broker_id"], first["volume"]), document["brokers"], margin)
    if first["broker_id"] != broker_id or not size:
        return None
    return expiry_sentence(settings, first["volume"], size)


def _filling(settings: Settings, broker_id: int, document: Mapping[str, Any]) -> str | None:
    """Return what Kafka copies to a volume of this host that decides, in a PAUSE; takes some seconds then."""
    if document["state"] != State.PAUSE.value or not document["reasons"]:
        return None
    first = document["reasons"][0]
    volumes = next((one["volumes"] for one in document["brokers"] if one["broker_id"] == broker_id), None)
    log_dirs = next((one["log_dirs"] for one in volumes or () if one["volume"] == first["volume"]), None)
    if first["broker_id"] != broker_id or not log_dirs:
        return None
    connection = AdminConnection(ClientProperties(settings.librdkafka(), CLIENT_NAME))
    try:
        inflow = measure_inflow(log_dirs, connection, broker_id)
    finally:
        connection.close()
    return None if inflow is None else f"{inflow_text(first['volume'], inflow)}."


def client_sentence(name: str, applied: AppliedState | AppliedUnknown, broker_id: int) -> str:
    """Return one sentence about how a broker holds the clients of this name, by its plug-in's report."""
    if not isinstance(applied, AppliedState) or applied.clients is None:
        why = "its plug-in reports no clients" if isinstance(applied, AppliedState) else applied.reason
        return f"Client {name}: not known at broker {broker_id}, because {why}."
    found = [one for one in applied.clients.top if one.is_called(name)]
    if not found:
        return f"Client {name}: not among those that the plug-in of broker {broker_id} lists."
    one = min(found, key=lambda client: 1 if client.factor is None else client.factor)
    who = f"Client {one.name} at broker {broker_id}"
    if applied.mode is Mode.OBSERVE or applied.state is State.OPEN:
        return f"{who}: not held."
    if applied.scope is AppliedScope.CLUSTER:
        return f"{who}: held as every producer, {applied.state}."
    if one.factor is None:
        return f"{who}: not held, it has written to no topic at stake in the last ten seconds."
    if one.factor == 0:
        return f"{who}: requests to a paused topic are refused, all others flow."
    return f"{who}: slowed to {one.factor:.2g}, the worst factor of its topics at stake; others flow."
