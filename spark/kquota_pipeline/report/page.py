"""The report as one HTML page that loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kquota.policy.limits import LimitType
from kquota_pipeline.report import figures, plots
from kquota_pipeline.report.forecasts import tiles, usage
from kquota_pipeline.report.markup import Markup, element, joined
from kquota_pipeline.report.parts import Cluster, table
from kquota_pipeline.report.style import STYLE
from kquota_pipeline.report.writers import clients, thresholds, writers

_STATE_KEYS = (("OPEN", "open"), ("THROTTLE", "throttle"), ("PAUSE", "pause"))


def page(document: Mapping[str, Any]) -> str:
    """Return the page that shows a report's document (see report.model)."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", "kquota: disks of the cluster"),
        element("style", Markup(STYLE)),
    )
    span = (
        f"{figures.moment_of(document['from_seconds'])} to {figures.moment_of(document['until_seconds'])} UTC"
    )
    body = element(
        "body",
        element("h1", "Which disk fills, who fills it, which limits to set"),
        element("p", f"History of {span}. Nothing here has been applied.", class_="note"),
        _quarantine(document["quarantine"]),
        *[_unreadable(name) for name in document["unreadable_clusters"]],
        *[_cluster(cluster, document) for cluster in document["clusters"]],
        _accuracy(document["accuracy"]),
        element("p", f"Made by kquota-pipeline, {document['made_at']}.", class_="note"),
    )
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en") + "\n"


def _quarantine(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Return the records that are in no other table, and so in no figure of the page."""
    if not rows:
        return Markup("")
    count = sum(row["records"] for row in rows)
    text = (
        f"{count:,} {'record is' if count == 1 else 'records are'} in quarantine since a week ago, and in no "
        "figure below. A broker whose records are all there has no forecast."
    )
    lines = [
        (
            row["reason"],
            f"{row['records']:,}",
            ", ".join(map(str, row["brokers"])) or figures.NONE,
            figures.moment_of(row["last_seconds"]),
        )
        for row in rows
    ]
    columns = ("defect", "records", "brokers", "last one, UTC")
    return element("div", element("p", text, class_="bad"), table(columns, lines, numbers=(1,)))


def _unreadable(cluster_id: str) -> Markup:
    text = f"No sample of a volume of cluster {cluster_id} could be read: it has no figures."
    return element("p", text, class_="bad")


def _cluster(cluster: Cluster, document: Mapping[str, Any]) -> Markup:
    return element(
        "section",
        element("h2", f"Cluster {cluster['cluster_id']}"),
        tiles(cluster),
        usage(cluster),
        writers(cluster),
        _recommendation(cluster),
        _states(cluster),
        _backtest(cluster, document),
        clients(cluster),
        thresholds(cluster),
        _skew(cluster),
    )


def _states(cluster: Cluster) -> Markup:
    if not cluster["spans"]:
        return Markup("")
    keys = [joined([element("span", class_=f"key {key}"), Markup(state)]) for state, key in _STATE_KEYS]
    return element(
        "div",
        element("h2", "Decisions of the cluster"),
        element("p", *keys, class_="note"),
        element("div", plots.states([tuple(span) for span in cluster["spans"]]), class_="card one"),
    )


def _backtest(cluster: Cluster, document: Mapping[str, Any]) -> Markup:
    rows, shares = [], []
    chosen = cluster["recommendation"]["policy"]
    for row in cluster["outcomes"]:
        seconds = [row[f"{key}_seconds"] for _, key in _STATE_KEYS]
        total = sum(seconds) or 1
        shares.append((row["policy"], [part / total for part in seconds]))
        filled = row["first_filled_tick"]
        rows.append(
            (
                row["policy"],
                *[figures.percent(part / total) for part in seconds],
                figures.size(row["delayed_bytes"]),
                figures.size(row["lost_bytes"]),
                figures.percent(row["fullest_ratio"]),
                *[_hours(row[f"{held}_producer_hours"]) for held in ("paused", "slowed")],
                "no" if filled is None else f"{figures.moment_of(filled)}",
            )
        )
    columns = (
        *("policy", "OPEN", "THROTTLE", "PAUSE", "delayed", "not sent", "fullest"),
        *("producer-hours paused", "producer-hours slowed", "a disk filled"),
    )
    text = (
        f"Each policy rules over the same history in steps of {figures.duration(document['tick_seconds'])}. "
        f"Held data does not land; every byte lands {document['replication_factor']:g} times. "
        f"The last {len(cluster['tried'])} were made for the recommendation."
        f"{_wider(cluster['outcomes'])}"
    )
    return element(
        "div",
        element("h2", "The effect of other policies"),
        element("p", text, class_="note"),
        element("div", plots.shares(shares), class_="card one"),
        table(columns, rows, numbers=range(1, 9), chosen=chosen, bad=9),
    )


def _hours(hours: float) -> str:
    return f"{hours:,.1f}"


def _wider(outcomes: Sequence[Mapping[str, Any]]) -> str:
    """Return for how long the history does not distinguish producers, and how many it does not list."""
    text = ""
    wider = [
        f"{row['policy']} {figures.duration(row['cluster_scope_seconds'])}"
        for row in outcomes
        if row["cluster_scope_seconds"]
    ]
    if wider:
        text += f" Held as with the scope cluster, because the history lacks topics: {', '.join(wider)}."
    unlisted = max((row["unlisted_client_hours"] for row in outcomes), default=0.0)
    if unlisted > 0:
        text += f" Not counted are clients that records do not list: at most {_hours(unlisted)} hours."
    return text


def _recommendation(cluster: Cluster) -> Markup:
    found = cluster["recommendation"]
    parts: list[Markup] = [element("h2", "Which limits to set")]
    if found["policy"] is None:
        parts.append(element("p", str(found["problem"]), class_="bad"))
    else:
        sentence = found["risk"]["sentence"]
        parts.append(element("p", f"{found['policy'].capitalize()}: {sentence}.", class_="note"))
    rows = []
    for broker, limits in found["limits"].items():
        others = "all others" if limits["volumes"] else "all"
        rows.append((f"broker {broker}", others, _limit(limits["hard"]), _limit(limits["soft"])))
        for mount_point, own in limits["volumes"].items():
            rows.append(
                (
                    "",
                    mount_point,
                    *[_limit(own[name]) if name in own else "as the broker" for name in ("hard", "soft")],
                )
            )
    if rows:
        parts.append(table(("broker", "volume", "hard", "soft"), rows))
    return element("div", *parts)


def _limit(limit: Mapping[str, Any]) -> str:
    kind, level = LimitType(limit["type"]), limit["level"]
    amount = f"{level:g}\N{NO-BREAK SPACE}%" if kind.in_percent else figures.size(level)
    return f"{amount} {'free' if kind.counts_free else 'consumed'}"


def _skew(cluster: Cluster) -> Markup:
    brokers: dict[int, list[tuple[str, float]]] = {}
    for row in cluster["volumes"]:
        brokers.setdefault(row["broker_id"], []).append((row["volume_name"], row["used_ratio"]))
    if not brokers:
        return Markup("")
    move = cluster["move"]
    even = 0.0 if move is None else move["even_ratio"]
    parts = [
        element("h2", "How evenly the disks are filled"),
        element("div", plots.skew(sorted(brokers.items()), even), class_="card one"),
    ]
    if move is not None:
        text = (
            f"Moving {figures.size(move['move_bytes'])} from broker {move['from_broker_id']} "
            f"{move['from_volume']} to broker {move['to_broker_id']} {move['to_volume']} would bring the "
            f"fullest disk from {figures.percent(move['fullest_ratio'])} to "
            f"{figures.percent(move['after_ratio'])}; evenly filled, all would be at "
            f"{figures.percent(move['even_ratio'])} (the dashed line)."
        )
        parts.append(element("p", text))
    return element("div", *parts)


def _accuracy(rows: Sequence[Mapping[str, Any]]) -> Markup:
    lines = [
        (
            row["method"],
            str(row["forecasts"]),
            figures.percent(row["mean_error_ratio"], 2),
            figures.percent(row["median_error_ratio"], 2),
            figures.NONE if row["covered_ratio"] is None else figures.percent(row["covered_ratio"], 0),
        )
        for row in rows
    ]
    text = (
        "Forecasts of up to seven days, from the data known 5, 7, 9 and 11 days ago; errors in percent "
        "of the capacity. The interval is meant to cover 80 %."
    )
    columns = ("method", "forecasts", "mean error", "median error", "inside the interval")
    return element(
        "section",
        element("h2", "How good such forecasts were"),
        element("p", text, class_="note"),
        table(columns, lines, numbers=(1, 2, 3, 4)),
    )
