"""The report as one HTML page that loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kquota_pipeline.report import figures, plots
from kquota_pipeline.report.chances import advice, chances, who
from kquota_pipeline.report.markup import Markup, element, joined
from kquota_pipeline.report.style import STYLE

_AHEAD_DAYS = 14
_DAY_SECONDS = 86_400
_STATE_KEYS = (("OPEN", "open"), ("THROTTLE", "throttle"), ("PAUSE", "pause"))
_MAX_ROWS = 40
Cluster = Mapping[str, Any]


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
        *[_cluster(cluster, document) for cluster in document["clusters"]],
        _accuracy(document["accuracy"]),
        element("p", f"Made by kquota-pipeline, {document['made_at']}.", class_="note"),
    )
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en") + "\n"


def _cluster(cluster: Cluster, document: Mapping[str, Any]) -> Markup:
    return element(
        "section",
        element("h2", f"Cluster {cluster['cluster_id']}"),
        _tiles(cluster),
        _usage(cluster),
        _states(cluster),
        _backtest(cluster, document),
        _recommendation(cluster),
        _clients(cluster),
        _topics(cluster),
        _skew(cluster),
    )


def _tiles(cluster: Cluster) -> Markup:
    rows = cluster["forecasts"]
    seconds = {state: 0.0 for state, _ in _STATE_KEYS}
    for begin, until, state in cluster["spans"]:
        seconds[state] += until - begin
    total = sum(seconds.values()) or 1.0
    tiles = []
    if rows:
        first = rows[0]
        tiles.append(_tile("First at its soft limit", f"{_volume(first)}: {chances(first, 'soft')}"))
        tiles.append(_tile("Who fills it", who(first, cluster["clients"])))
        tiles.append(_tile("What to do", advice(first)))
        fullest = max(rows, key=lambda row: row["consumed_bytes"] / max(row["capacity_bytes"], 1))
        ratio = fullest["consumed_bytes"] / max(fullest["capacity_bytes"], 1)
        tiles.append(_tile("Fullest now", f"{_volume(fullest)}: {figures.percent(ratio)}"))
    held = total - seconds["OPEN"]
    tiles.append(
        _tile("Producers slowed or paused", f"{figures.duration(held)} ({figures.percent(held / total)})")
    )
    chosen = cluster["recommendation"]["policy"]
    tiles.append(_tile("Recommended limits", chosen if chosen is not None else "none is safe"))
    return element("div", *tiles, class_="tiles")


def _tile(name: str, figure: str) -> Markup:
    return element("div", element("small", name), element("b", figure), class_="card tile")


def _volume(row: Mapping[str, Any]) -> str:
    return f"broker {row['broker_id']} {row['volume_name']}"


def _usage(cluster: Cluster) -> Markup:
    rows = {(row["broker_id"], row["volume_name"]): row for row in cluster["forecasts"]}
    cards = []
    for series in cluster["series"]:
        row = rows[series["broker_id"], series["volume_name"]]
        if len(series["points"]) < 2:
            continue
        capacity = row["capacity_bytes"]
        plot = plots.UsagePlot(
            title=f"Usage of {_volume(row)}",
            points=[(at, ratio) for at, ratio in series["points"]],
            soft_ratio=row["soft_bytes"] / capacity,
            hard_ratio=row["hard_bytes"] / capacity,
            band=_band(row),
        )
        text = f"soft limit: {chances(row, 'soft')}; hard limit: {chances(row, 'hard')}"
        cards.append(
            element(
                "div", element("h3", _volume(row)), plots.usage(plot), element("small", text), class_="card"
            )
        )
    text = (
        "The volumes that most likely reach their soft limit: crests of four hours in percent of the "
        f"capacity, and the crests of the next {_AHEAD_DAYS} days in four cases of five."
    )
    return element(
        "div",
        element("h2", "Which disk will be full, and when"),
        element("p", text, class_="note"),
        element("div", *cards, class_="plots"),
        _forecast_table(cluster["forecasts"]),
    )


def _band(row: Mapping[str, Any]) -> list[tuple[float, float, float, float]]:
    """Return (epoch seconds, low, middle, high) from now on, as shares of the capacity."""
    if row["crest_bytes"] is None:
        return []
    capacity = row["capacity_bytes"]
    now = row["consumed_bytes"] / capacity
    band = [(row["hour"] * 3600.0, now, now, now)]
    for day in range(_AHEAD_DAYS):
        # A crest is anywhere in its day.
        at = (row["hour"] + 24 * day + 12) * 3600.0
        band.append((at, *(row[f"{name}_bytes"][day] / capacity for name in ("low", "crest", "high"))))
    return band


def _forecast_table(rows: Sequence[Mapping[str, Any]]) -> Markup:
    lines = [
        (
            _volume(row),
            figures.percent(row["consumed_bytes"] / max(row["capacity_bytes"], 1)),
            figures.NONE
            if row["crest_bytes"] is None
            else figures.percent(row["crest_bytes"][6] / max(row["capacity_bytes"], 1)),
            str(row["soft_outlook"]),
            chances(row, "soft"),
            chances(row, "hard"),
            figures.NONE if row["basis"] is None else str(row["basis"]),
        )
        for row in rows[:_MAX_ROWS]
    ]
    note = (
        []
        if len(rows) <= _MAX_ROWS
        else [element("p", f"{len(rows) - _MAX_ROWS} more are in the JSON.", class_="note")]
    )
    columns = ("volume", "used", "in 7 days", "outlook", "soft limit", "hard limit", "made of")
    return joined([_table(columns, lines, numbers=(1, 2)), *note])


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
        _table(columns, rows, numbers=range(1, 9), chosen=chosen, bad=9),
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
    advice = cluster["recommendation"]
    parts: list[Markup] = [element("h2", "Which limits to set")]
    if advice["policy"] is None:
        parts.append(element("p", str(advice["problem"]), class_="bad"))
    rows = []
    for broker, limits in advice["limits"].items():
        rows.append((f"broker {broker}", "", _limit(limits["hard"]), _limit(limits["soft"])))
        for mount_point, own in limits["volumes"].items():
            rows.append(
                (
                    "",
                    mount_point,
                    *[_limit(own[name]) if name in own else "as the broker" for name in ("hard", "soft")],
                )
            )
    if rows:
        parts.append(_table(("broker", "volume", "hard", "soft"), rows))
    return element("div", *parts)


def _limit(limit: Mapping[str, Any]) -> str:
    if limit["type"] == "MinFreePercentage":
        return f"{limit['level']:g}\N{NO-BREAK SPACE}% free"
    return f"{figures.size(limit['level'])} {'free' if limit['type'] == 'MinFreeBytes' else 'consumed'}"


def _clients(cluster: Cluster) -> Markup:
    clients = cluster["clients"]
    most = max((row["bytes"] for row in clients), default=1) or 1
    bars = [
        (
            f"{row['user'] or '(no user)'} · {row['client_id'] or '(no client id)'}",
            row["bytes"] / most,
            f"{figures.size(row['bytes'])}, {figures.percent(row['share_ratio'], 0)}",
        )
        for row in clients
    ]
    waits = [
        (
            row["user"] or figures.NONE,
            row["client_id"] or figures.NONE,
            figures.rate(row["mean_bytes_per_second"]),
            figures.rate(row["peak_bytes_per_second"]),
            figures.duration(row["throttled_seconds"]),
        )
        for row in clients
    ]
    parts = [element("h2", "Clients that fill the disks")]
    if bars:
        parts.append(element("div", plots.bars(bars, "Bytes by client"), class_="card one"))
        columns = ("user", "client id", "mean", "peak on a broker", "delays imposed")
        parts.append(_table(columns, waits, numbers=(2, 3, 4)))
    if cluster["quota_commands"]:
        parts.append(element("p", "These stand out so far that a quota of their own is justified:"))
        parts.append(element("pre", "\n".join(cluster["quota_commands"])))
    else:
        parts.append(
            element("p", "No client stands out so far that it needs a quota of its own.", class_="note")
        )
    return element("div", *parts)


def _topics(cluster: Cluster) -> Markup:
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
        _table(columns, rows[:_MAX_ROWS], numbers=(2, 3, 4)),
    )


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
        _table(columns, lines, numbers=(1, 2, 3, 4)),
    )


def _table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Sequence[int] | range = (),
    chosen: str | None = None,
    bad: int | None = None,
) -> Markup:
    head = [
        element("th", name, class_="n" if number in numbers else None) for number, name in enumerate(columns)
    ]
    body = []
    for row in rows:
        cells = []
        for number, cell in enumerate(row):
            kind = "n" if number in numbers else ("bad" if number == bad and cell != "no" else None)
            cells.append(element("td", cell, class_=kind))
        body.append(element("tr", *cells, class_="chosen" if row[0] == chosen else None))
    table = element("table", element("thead", element("tr", *head)), element("tbody", *body))
    return element("div", table, class_="scroll")
