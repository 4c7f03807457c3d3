"""``kquota top``: who fills the disks of this broker, and who is held back."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kquota.apply.applied_state import AppliedState, read_applied_state
from kquota.apply.clients import ClientFigures
from kquota.cli.configuration import DEFAULT_CONFIG, ConfigOption, JsonOption, broker_id_of, settings_of
from kquota.cli.output import fail, print_json
from kquota.display.figures import size_text
from kquota.host.boot_clock import BootClock
from kquota.host.safe_read import Refusal, read_json_object


def top(
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
    count: Annotated[int, typer.Option("--count", "-n", help="How many clients to show.", min=1)] = 20,
) -> None:
    """Show who fills this broker's disks and who is held back: rates, limits, delays, refusals, groups.

    Exits with 1 if the plug-in does not report it.
    """
    settings = settings_of(config)
    applied = read_applied_state(settings.applied_file, BootClock().now(), broker_id=broker_id_of(settings))
    if not isinstance(applied, AppliedState):
        fail(applied.reason)
    if applied.clients is None:
        fail(f"{settings.applied_file}: the plug-in {applied.plugin_version} reports no clients")
    if as_json:
        document = read_json_object(settings.applied_file, "applied-state file")
        if isinstance(document, Refusal):
            fail(document.reason)
        print_json(document["clients"])
        return
    _show(applied.clients, count)


def _show(figures: ClientFigures, count: int) -> None:
    console = Console(soft_wrap=True, highlight=False)
    clients = Table(box=None, pad_edge=False)
    for heading in ("CLIENT", "PRODUCES", "LIMIT", "DELAY", "HELD", "PRODUCED", "READS"):
        clients.add_column(heading, justify="left" if heading == "CLIENT" else "right", no_wrap=True)
    for client in figures.top[:count]:
        clients.add_row(
            Text(client.name),
            f"{size_text(client.produce_rate)}/s",
            "-" if client.produce_limit is None else f"{size_text(client.produce_limit)}/s",
            f"{client.produce_throttle_ms:.0f} ms" if client.produce_throttle_ms else "-",
            f"{client.held_seconds:.0f} s" if client.held_seconds else "-",
            size_text(client.produced_bytes),
            f"{size_text(client.fetch_rate)}/s",
        )
    console.print(clients)
    omitted = figures.known - min(count, len(figures.top))
    if omitted > 0:
        console.print(f"and {omitted} more", markup=False)
    for refused in figures.refused[:count]:
        client_id = json.dumps(refused.client_id, ensure_ascii=False)
        line = f"{refused.principal} with client id {client_id}: {refused.requests} produce requests refused"
        console.print(line, markup=False)
    for group in figures.groups:
        shared = (
            ""
            if group.partitions is None
            else f", {group.partitions_led} of {group.partitions} partitions led here"
        )
        limits = [
            f"{what} {size_text(limit)}/s"
            for what, limit in (("produce", group.produce_limit), ("fetch", group.fetch_limit))
            if limit is not None
        ]
        if group.request_percentage is not None:
            limits.append(f"request {group.request_percentage:g} %")
        console.print(f"group {group.name}: {', '.join(limits)}{shared}", markup=False)
