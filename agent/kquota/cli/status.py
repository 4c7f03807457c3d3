"""``kquota status``: brokers, volumes, limits, headroom, state, age, decided and applied."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from kquota.cli import exit_codes
from kquota.cli.cluster_look import ClusterLook, look_at_cluster
from kquota.cli.configuration import (
    DEFAULT_CONFIG,
    ConfigOption,
    JsonOption,
    broker_id_of,
    broker_of,
    settings_of,
)
from kquota.cli.local_state import (
    broken_glass,
    cluster_topics,
    disagreement,
    local_document,
    local_notes,
    next_step,
)
from kquota.cli.output import fail, print_json
from kquota.display.console import console_for_people
from kquota.display.status_table import Order
from kquota.display.status_view import Looks, first_view, status_view
from kquota.settings import Settings


class Sort(StrEnum):
    """The names of the sort orders on the command line."""

    BROKER = "broker"
    HEADROOM = "headroom"
    TIME = "time"
    FILL = "fill"


def status(
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Refresh it all the time; ? lists the keys.")
    ] = False,
    over_limit: Annotated[
        bool, typer.Option("--over-limit", help="Only volumes over a limit, and brokers with a remark.")
    ] = False,
    sort: Annotated[
        Sort, typer.Option(help="By broker, least left first, soonest at its limit first, fastest first.")
    ] = Sort.BROKER,
    show_all: Annotated[bool, typer.Option("--all", help="All lines, also of more than 20 brokers.")] = False,
    until_active: Annotated[
        bool, typer.Option("--until-active", help="Wait until the broker of this host is active.")
    ] = False,
    interval: Annotated[float, typer.Option(help="Seconds between two looks of --watch.", min=0.1)] = 1.0,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the cluster.", min=0.1)] = 15.0,
) -> None:
    """Show every broker's report, the decision, and the state that the plug-ins apply.

    Reads the usage topic itself: it also works without a live agent. Exits with 1 if the cluster could
    not be read in time, or the broker was not active, and shows what it has read. Of more than 20 brokers it
    shows what matters most, and counts the rest; --json is always whole.
    """
    looks = Looks(Order[sort.name], troubled_only=over_limit)
    settings = settings_of(config)
    broker_id = broker_id_of(settings)
    with look_at_cluster(settings) as look:
        complete = look.wait(timeout, broker_id if until_active else None)
        if watch and not as_json:
            from kquota.cli.topic_look import TopicLook  # noqa: PLC0415 - kept out of the start without it
            from kquota.cli.watch import watch as run_watch  # noqa: PLC0415

            run_watch(
                look,
                lambda: document_of(look, settings, broker_id),
                TopicLook([str(path) for path in broker_of(settings).log_dirs]),
                seconds=interval,
                looks=looks,
                ascii_only=_ascii_only(),
            )
            return
        document = document_of(look, settings, broker_id)
    if as_json:
        print_json(document)
    else:
        console = console_for_people()
        if show_all:
            view = status_view(document, console.width, ascii_only=_ascii_only(), looks=looks)
        else:
            view = first_view(document, console, looks, ascii_only=_ascii_only())
        console.print(view)
    if not complete:
        if until_active and look.complete:
            fail(f"broker {broker_id} is not active after {timeout:g} s")
        raise typer.Exit(exit_codes.FAILED)


def document_of(look: ClusterLook, settings: Settings, broker_id: int) -> dict[str, Any]:
    """Return the output of ``--json``: the result of the look, and the contents of the files on this host."""
    local = local_document(settings, broker_id)
    document = look.document(cluster_topics(local))
    document["local"] = local
    document["disagreement"] = disagreement(document, local)
    document["broken_glass"] = broken_glass(document, local)
    document["next_step"] = next_step(document, local, settings.mode)
    document["notes"] = local_notes(local)
    return document


def _ascii_only() -> bool:
    return "utf" not in (sys.stdout.encoding or "").lower()
