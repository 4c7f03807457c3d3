"""`recommend`: limits and quotas, as files and commands, with their risk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pyspark.sql import Row

from kquota_pipeline.accounting.clients import by_client, quotas
from kquota_pipeline.cli.analysis import ReplicationOption, SinceOption, TickOption, check_tick
from kquota_pipeline.cli.options import SparkOption, TablesOption, readable, say
from kquota_pipeline.cli.reader import history_of, reader
from kquota_pipeline.cli.results import to_json
from kquota_pipeline.recommend.judge import Recommendation, recommend_limits
from kquota_pipeline.recommend.reserve import Sizing
from kquota_pipeline.recommend.write import folder_name, quota_commands, write_limits

_DEFAULT = Sizing()


def recommend(
    tables: TablesOption,
    to: Annotated[Path, typer.Option("--to", help="Folder for the Ansible variables, one file per broker.")],
    spark: SparkOption = None,
    since: SinceOption = None,
    reaction_seconds: Annotated[
        float, typer.Option(min=0, help="From the crossing of a limit until brokers hold producers.")
    ] = _DEFAULT.reaction_seconds,
    quota_window_seconds: Annotated[
        float, typer.Option(min=0, help="The brokers' quota window: number times size of its samples.")
    ] = _DEFAULT.window_seconds,
    request_bytes: Annotated[
        int, typer.Option(min=0, help="The largest produce request of the clients.")
    ] = _DEFAULT.request_bytes,
    connections: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Producing connections of each broker; without it, its clients in the records are counted.",
        ),
    ] = None,
    no_fence: Annotated[
        bool,
        typer.Option("--no-fence", help="Count what a PAUSE lets through without the fence on all brokers."),
    ] = False,
    pause_seconds: Annotated[
        float, typer.Option(min=0, help="How long a PAUSE may last; counts for brokers without the fence.")
    ] = _DEFAULT.pause_seconds,
    pause_mute_seconds: Annotated[
        float, typer.Option(min=0.1, help="The brokers' kquota.produce.mute.max.ms, in seconds.")
    ] = _DEFAULT.mute_seconds,
    arrival_bytes: Annotated[
        int, typer.Option(min=0, help="The brokers' kquota.produce.arrival.min.bytes.")
    ] = _DEFAULT.arrival_bytes,
    tick_seconds: TickOption = 600,
    replication_factor: ReplicationOption = 3.0,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print JSON: for each cluster the limits with their risk, the quotas and their commands.",
        ),
    ] = False,
) -> None:
    """Write limits that would have kept every disk from filling, also in weeks that were held back, and print
    commands for quotas. Applies nothing.
    """
    history = history_of(reader(tables, spark, since), in_steps=True)
    check_tick(history, tick_seconds)
    sizing = Sizing(
        reaction_seconds,
        quota_window_seconds,
        request_bytes,
        replication_factor,
        connections,
        pause_seconds,
        pause_mute_seconds,
        arrival_bytes,
        trusts_fence=not no_fence,
    )
    found = recommend_limits(history, tick_seconds, sizing)
    quota_rows = quotas(by_client(history.clients)).collect()
    for one in found:
        _write(one, to / folder_name(one.cluster_id) if len(found) > 1 else to)
    if as_json:
        typer.echo(to_json([_document(one, quota_rows) for one in found]))
        return
    for command in quota_commands(quota_rows):
        typer.echo(command)
    for row in quota_rows:
        client = readable(f"{row.user} {row.client_id}")
        say(f"{client}: usual peak {row.peak_bytes_per_second:.0f} bytes/s on a broker")


def _write(one: Recommendation, folder: Path) -> None:
    """Write the files of a cluster, and say their reserve, and their risk or the problem."""
    name = readable(one.cluster_id)
    if one.basis is not None:
        say(f"cluster {name}: {one.basis.sentence()}")
    if one.policy is None:
        say(f"cluster {name}: {one.problem}")
        return
    for path in write_limits(one.policy.brokers, folder):
        say(f"{path} is written")
    assert one.risk is not None
    say(f"cluster {name}: {one.policy.name}; {one.risk.sentence()}")


def _document(one: Recommendation, quota_rows: list[Row]) -> dict[str, Any]:
    own = [row for row in quota_rows if row.cluster_id == one.cluster_id]
    return {
        "cluster_id": one.cluster_id,
        "recommendation": one.document(),
        "quotas": [row.asDict(recursive=True) for row in own],
        "quota_commands": quota_commands(own),
    }
