"""``kquota top``: the clients that fill the disks of this broker, and those that are held."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kquota.cli.configuration import DEFAULT_CONFIG, ConfigOption, JsonOption, broker_id_of, settings_of
from kquota.cli.output import fail, print_json
from kquota.cli.topic_sizes import contents_document, show_topics
from kquota.display.console import console_for_people
from kquota.display.figures import size_text
from kquota.guard.applied_clients import ClientFigures, ClientUse, GroupUse
from kquota.guard.applied_state import AppliedState, read_applied_state
from kquota.host.boot_clock import BootClock
from kquota.host.safe_read import Refusal, read_json_object

_HEADINGS = ("PRODUCES", "LIMIT", "DELAY", "HELD", "PRODUCED", "READS")
_WHAT = ("produces", "limit", "delay", "held", "produced", "reads")
# In fewer columns than these a table has no room for names.
_TABLE_COLUMNS = 76
_GAP_COLUMNS = 2


def top(
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
    count: Annotated[int, typer.Option("--count", "-n", help="How many to show.", min=1)] = 20,
    topics: Annotated[
        bool, typer.Option("--topics", help="Show the topics on this broker's disks instead of clients.")
    ] = False,
) -> None:
    """Show the clients that fill this broker's disks or are held: rates, limits, delays, refusals, groups.

    With --topics, show the largest topics on its disks: bytes, growth, and the bytes that leave within the
    hour. Exits with 1 if the plug-in, or for topics the agent, does not report it.
    """
    settings = settings_of(config)
    if topics:
        document = contents_document(settings)
        if as_json:
            print_json(document["Topics"])
        else:
            show_topics(console_for_people(soft_wrap=True), document, count)
        return
    applied = read_applied_state(settings.applied_file, BootClock().now(), broker_id=broker_id_of(settings))
    if not isinstance(applied, AppliedState):
        fail(applied.reason)
    if applied.clients is None:
        fail(f"{settings.applied_file}: the plug-in {applied.plugin_version} reports no clients")
    if as_json:
        report = read_json_object(settings.applied_file, "applied-state file")
        if isinstance(report, Refusal):
            fail(report.reason)
        print_json(report["clients"])
        return
    _show(applied.clients, count)


def _show(figures: ClientFigures, count: int) -> None:
    console = console_for_people(soft_wrap=True)
    if console.width < _TABLE_COLUMNS:
        for client in figures.top[:count]:
            console.print(client.name)
            told = ", ".join(
                f"{what} {text}" for what, text in zip(_WHAT, _figures(client), strict=True) if text != "-"
            )
            if client.held_by_topics is not None:
                told += f", its topics at stake {client.held_by_topics}"
            console.print(f"  {told}")
    else:
        _show_table(console, figures.top[:count])
    omitted = figures.known - min(count, len(figures.top))
    if omitted > 0:
        console.print(f"and {omitted} more")
    for refused in figures.refused[:count]:
        client_id = json.dumps(refused.client_id, ensure_ascii=False)
        line = f"{refused.principal} with client id {client_id}: {refused.requests} produce requests refused"
        console.print(line)
    for group in figures.groups:
        for line in _group_lines(group):
            console.print(line)


def _show_table(console: Console, clients: Sequence[ClientUse]) -> None:
    """Figures are shown whole; names are cut to fit."""
    rows = [_figures(client) for client in clients]
    headings: tuple[str, ...] = _HEADINGS
    if any(client.factor is not None for client in clients):
        headings = (*_HEADINGS, "TOPICS")
        rows = [(*row, client.held_by_topics or "-") for client, row in zip(clients, rows, strict=True)]
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    table = Table(box=None, pad_edge=False)
    room = console.width - sum(widths) - _GAP_COLUMNS * len(widths)
    name_width = min(room, max([len("CLIENT"), *(len(client.name) for client in clients)]))
    table.add_column("CLIENT", no_wrap=True, width=name_width)
    for heading, width in zip(headings, widths, strict=True):
        table.add_column(heading, justify="right", no_wrap=True, width=width)
    for client, row in zip(clients, rows, strict=True):
        table.add_row(Text(client.name), *row)
    console.print(table)


def _figures(client: ClientUse) -> tuple[str, ...]:
    limit = client.produce_limit_bytes_per_second
    return (
        f"{size_text(client.produce_bytes_per_second)}/s",
        "-" if limit is None else f"{size_text(limit)}/s",
        f"{client.produce_throttle_ms:.0f} ms" if client.produce_throttle_ms else "-",
        f"{client.held_seconds:.0f} s" if client.held_seconds else "-",
        size_text(client.produced_bytes),
        f"{size_text(client.fetch_bytes_per_second)}/s",
    )


def _group_lines(group: GroupUse) -> tuple[str, str]:
    limits = [
        f"{what} {size_text(limit)}/s"
        for what, limit in (
            ("produce", group.produce_limit_bytes_per_second),
            ("fetch", group.fetch_limit_bytes_per_second),
        )
        if limit is not None
    ]
    if group.request_percentage is not None:
        limits.append(f"request {group.request_percentage:g} %")
    if group.partitions is not None:
        limits.append(f"{group.partitions_led} of {group.partitions} partitions led here")
    used = [
        f"produces {size_text(group.produce_bytes_per_second)}/s",
        f"produced {size_text(group.produced_bytes)}",
    ]
    if group.held_seconds:
        used.append(f"held {group.held_seconds:.0f} s")
    if group.refused_requests:
        used.append(f"{group.refused_requests} requests refused")
    return f"group {group.name}: {', '.join(limits)}", f"  {', '.join(used)}"
