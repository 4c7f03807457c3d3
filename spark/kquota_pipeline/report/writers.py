"""The section of the report on the writers that fill the disks, and on their rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kquota_pipeline.report import figures, plots
from kquota_pipeline.report.markup import Markup, element
from kquota_pipeline.report.parts import MAX_ROWS, Cluster, table, volume_name

_UNKNOWN = "unattributed"
# Kafka's own name for clients that have not authenticated.
_ANONYMOUS = "ANONYMOUS"
_LISTED_PARTS = 3
_BARS = 8


def writers(cluster: Cluster) -> Markup:
    """Return who holds the bytes on the disks, and who fills the volumes that fill first."""
    holders = cluster["holders"]
    text = (
        f"Bytes of topics belong to those who wrote them, {holders['from']} to {holders['to']}: "
        f"{figures.percent(holders['known_principal_ratio'], 0)} of the bytes have a known principal, "
        f"{figures.percent(holders['known_topic_ratio'], 0)} a known topic. The history names the topics "
        "of clients while the state is not OPEN, and with the fence."
    )
    parts = [element("h2", "Who fills it"), element("p", text, class_="note")]
    by_group = holders["groups"] or holders["principals"]
    known = [row for row in by_group if row["held_bytes"] is not None]
    whole = sum(max(row["held_bytes"], 0.0) for row in known) or 1.0
    bars = [
        (
            user_name(row["owner"]),
            max(row["held_bytes"], 0.0) / whole,
            f"{figures.size(row['held_bytes'])}, {figures.percent(row['held_bytes'] / whole, 0)}",
        )
        for row in known[:_BARS]
        if row["held_bytes"] > 0
    ]
    if bars:
        title = f"Bytes held by {'group' if holders['groups'] else 'principal'}"
        parts.append(element("div", plots.bars(bars, title), class_="card one"))
    lines = [
        (volume_name(one), _grown(one), *_parts(one["parts"])) for one in holders["fillers"] if one["parts"]
    ]
    if lines:
        columns = ("volume", "in these days", "largest part: principal, topic", "second", "third")
        parts.append(table(columns, lines, numbers=(1,)))
    of_principals = ("principal", "held now", "change", "byte-days", "written", "read")
    parts.append(table(of_principals, [_figures(row) for row in holders["principals"]], numbers=range(1, 6)))
    return element("div", *parts)


def name_of(owner: str | None) -> str:
    """Return how an owner is called, None is not known. One that has the word for that as its name is in
    quotes, and one in quotes in further ones, so that no two owners are called alike.
    """
    if owner is None:
        return _UNKNOWN
    return f'"{owner}"' if owner.strip('"') == _UNKNOWN else owner


def user_name(user: str | None) -> str:
    """Return how a user, or a group, is called: an empty one has not authenticated."""
    return name_of(user) or _ANONYMOUS


def _grown(one: Mapping[str, Any]) -> str:
    if one["has_grown"]:
        return figures.change(one["bytes"])
    growth = "growth not known" if one["has_grown"] is None else "no growth"
    return f"{figures.size(one['bytes'])}, {growth}"


def _parts(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    whole = sum(part["bytes"] for part in parts) or 1.0
    found = []
    for part in parts[:_LISTED_PARTS]:
        share = figures.percent(part["bytes"] / whole, 0)
        found.append(f"{user_name(part['user'])}, {part['topic'] or 'no topic'}: {share}")
    return [*found, *[""] * (_LISTED_PARTS - len(found))]


def _figures(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        user_name(row["owner"]),
        figures.known(row["held_bytes"]),
        figures.known(row["growth_bytes"], figures.change),
        f"{figures.size(row['byte_days'])}\N{NO-BREAK SPACE}d",
        figures.size(row["written_bytes"]),
        figures.size(row["read_bytes"]),
    )


def clients(cluster: Cluster) -> Markup:
    """Return the rates of clients, and quotas for those that stand out."""
    lines = [
        (
            row["user"] or figures.NONE,
            row["client_id"] or figures.NONE,
            figures.size(row["bytes"]),
            figures.percent(row["share_ratio"], 0),
            figures.rate(row["mean_bytes_per_second"]),
            figures.rate(row["peak_bytes_per_second"]),
            figures.duration(row["throttled_seconds"]),
        )
        for row in cluster["clients"]
    ]
    parts = [element("h2", "Rates of clients")]
    if lines:
        columns = ("user", "client id", "written", "share", "mean", "peak on a broker", "delays imposed")
        parts.append(table(columns, lines, numbers=range(2, 7)))
    if cluster["quota_commands"]:
        parts.append(element("p", "These stand out so far that a quota of their own is justified:"))
        parts.append(element("pre", "\n".join(cluster["quota_commands"])))
    else:
        parts.append(
            element("p", "No client stands out so far that it needs a quota of its own.", class_="note")
        )
    return element("div", *parts)


def thresholds(cluster: Cluster) -> Markup:
    """Return thresholds of topics, where an operator has brought their rates."""
    rows = [
        (
            str(row["broker_id"]),
            row["topic"],
            figures.rate(row["peak_bytes_per_second"]),
            figures.NONE
            if row["threshold_bytes_per_second"] is None
            else figures.rate(row["threshold_bytes_per_second"]),
            figures.rate(row["total_bytes_per_second"]),
        )
        for row in sorted(
            cluster["topics"], key=lambda row: (row["broker_id"], -row["peak_bytes_per_second"])
        )
        if row["threshold_bytes_per_second"] is not None
    ]
    if not rows:
        return Markup("")
    text = "Topics that take more than an even share; the others share the rest of the total evenly."
    columns = ("broker", "topic", "peak", "threshold", "broker's total")
    return element(
        "div",
        element("h2", "Thresholds of topics"),
        element("p", text, class_="note"),
        table(columns, rows[:MAX_ROWS], numbers=(2, 3, 4)),
    )
