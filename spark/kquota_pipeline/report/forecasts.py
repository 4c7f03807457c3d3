"""The forecast in the report: the first tiles, the plots, and the table of volumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kquota_pipeline.forecast.probabilities import Outlook
from kquota_pipeline.report import figures, plots
from kquota_pipeline.report.chances import advice, chances, lacks_a_limit, who
from kquota_pipeline.report.markup import Markup, element, joined
from kquota_pipeline.report.parts import MAX_ROWS, Cluster, table, volume_name

_AHEAD_DAYS = 14
_DAY_SECONDS = 86_400
# This many silent brokers are named.
_NAMED = 4


def tiles(cluster: Cluster) -> Markup:
    """Return what fills first and when, who fills it, and what to do; then the cluster as a whole."""
    rows = cluster["forecasts"]
    found = _silent(cluster["silent_brokers"])
    if rows:
        first = rows[0]
        filled_by = next(iter(cluster["holders"]["fillers"]), None)
        found += [
            _tile(title(first), volume_name(first), _used(first)),
            _tile("At its soft limit", chances(first, "soft"), _day(first)),
            _tile("Who fills it", *who(filled_by)),
            _tile("What to do", advice(first)),
        ]
        fullest = max(rows, key=_ratio)
        if fullest is not first:
            found.append(_tile("Fullest now", volume_name(fullest), _used(fullest)))
        over = sum(row["soft_outlook"] == Outlook.OVER for row in rows)
        filling = sum(row["soft_outlook"] == Outlook.FILLING for row in rows)
        unknown = sum(row["soft_outlook"] == Outlook.UNKNOWN for row in rows)
        without_limit = sum(map(lacks_a_limit, rows))
        found.append(
            _tile(
                "Volumes",
                f"{over} over, {filling} filling",
                f"of {len(rows)}; at the soft limit now, or likely within thirty days"
                + (f"; {unknown} with too little history" if unknown else "")
                + (f"; {without_limit} with a limit of an unknown type" if without_limit else ""),
            )
        )
    seconds = {"OPEN": 0.0, "THROTTLE": 0.0, "PAUSE": 0.0}
    for begin, until, state in cluster["spans"]:
        seconds[state] += until - begin
    total = sum(seconds.values()) or 1.0
    held = total - seconds["OPEN"]
    found.append(
        _tile(
            "Producers slowed or paused",
            figures.duration(held),
            f"{figures.percent(held / total)} of the time",
        )
    )
    advised = cluster["recommendation"]
    risk = advised["risk"]
    found.append(
        _tile("Recommended limits", "none is safe")
        if risk is None
        else _tile(
            "Recommended limits",
            f"for {len(advised['limits'])} brokers",
            f"{advised['policy']}; confidence {risk['confidence']}",
        )
    )
    return element("div", *found, class_="tiles")


def _silent(brokers: Sequence[Mapping[str, Any]]) -> list[Markup]:
    """Return the tile of brokers without recent samples, if there are any."""
    if not brokers:
        return []
    named = [f"{one['broker_id']} since {figures.moment_of(one['last_seconds'])}" for one in brokers]
    more = f", and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    note = f"broker {', '.join(named[:_NAMED])}{more}: forecasts are old, and end after a day"
    return [
        _tile("No samples", f"of {len(named)} {'broker' if len(named) == 1 else 'brokers'}", note, bad=True)
    ]


def title(first: Mapping[str, Any]) -> str:
    """Return what the first volume of a cluster is first in; they are in the order of report.model."""
    outlook = first["soft_outlook"]
    if outlook != Outlook.OVER and lacks_a_limit(first):
        return "A limit of an unknown type"
    if outlook == Outlook.UNKNOWN:
        return "Fullest, and no forecast yet"
    return "Most likely to fill" if outlook == Outlook.NOT_FILLING else "Fills first"


def _tile(name: str, figure: str, note: str | None = None, *, bad: bool = False) -> Markup:
    parts = [element("small", name), element("b", figure, class_="bad" if bad else None)]
    return element("div", *parts, *([] if note is None else [element("small", note)]), class_="card tile")


def _ratio(row: Mapping[str, Any]) -> float:
    return _share(row["consumed_bytes"], row)


def _share(consumed_bytes: float, row: Mapping[str, Any]) -> float:
    """Return a consumption as a share of the capacity. A file system may say that it has none."""
    return float(consumed_bytes / max(row["capacity_bytes"], 1))


def _used(row: Mapping[str, Any]) -> str:
    return (
        f"{figures.percent(_ratio(row))} used, {figures.size(row['consumed_bytes'])} of "
        f"{figures.size(row['capacity_bytes'])}"
    )


def _day(row: Mapping[str, Any]) -> str:
    """Return the day on which the soft limit is reached with a probability of one half, and the hard one."""
    hard = f"hard limit: {chances(row, 'hard')}"
    if row["soft_days"] is None or row["soft_outlook"] == Outlook.OVER:
        return hard
    return f"as likely as not by {figures.day_of(_soft_at(row))}; {hard}"


def _soft_at(row: Mapping[str, Any]) -> float:
    return float(row["hour"] * 3600 + row["soft_days"] * _DAY_SECONDS)


def usage(cluster: Cluster) -> Markup:
    """Return the plots of the first volumes, and the table of all."""
    rows = {(row["broker_id"], row["volume_name"]): row for row in cluster["forecasts"]}
    cards = []
    for series in cluster["series"]:
        row = rows[series["broker_id"], series["volume_name"]]
        if len(series["points"]) < 2:
            continue
        soft, hard = row["soft_bytes"], row["hard_bytes"]
        plot = plots.UsagePlot(
            title=f"Usage of {volume_name(row)}",
            points=[(at, ratio) for at, ratio in series["points"]],
            soft_ratio=None if soft is None else _share(soft, row),
            hard_ratio=None if hard is None else _share(hard, row),
            band=_band(row),
        )
        text = f"soft limit: {chances(row, 'soft')}; hard limit: {chances(row, 'hard')}"
        cards.append(
            element(
                "div",
                element("h3", volume_name(row)),
                plots.usage(plot),
                element("small", text),
                class_="card",
            )
        )
    text = (
        "The volumes that reach their soft limit first: crests of four hours in percent of the "
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
    now = _ratio(row)
    band = [(row["hour"] * 3600.0, now, now, now)]
    for day in range(_AHEAD_DAYS):
        # A crest is anywhere in its day.
        at = (row["hour"] + 24 * day + 12) * 3600.0
        band.append((at, *(_share(row[f"{name}_bytes"][day], row) for name in ("low", "crest", "high"))))
    return band


def _forecast_table(rows: Sequence[Mapping[str, Any]]) -> Markup:
    lines = [
        (
            volume_name(row),
            figures.percent(_ratio(row)),
            f"{figures.size(row['consumed_bytes'])} of {figures.size(row['capacity_bytes'])}",
            figures.NONE
            if row["crest_bytes"] is None
            else figures.percent(_share(row["crest_bytes"][6], row)),
            _date(row),
            chances(row, "soft"),
            chances(row, "hard"),
            figures.NONE if row["basis"] is None else str(row["basis"]),
        )
        for row in rows[:MAX_ROWS]
    ]
    note = (
        []
        if len(rows) <= MAX_ROWS
        else [element("p", f"{len(rows) - MAX_ROWS} more are in the JSON.", class_="note")]
    )
    columns = ("volume", "used", "bytes", "in 7 days", "soft limit on", "soft limit", "hard limit", "made of")
    return joined([table(columns, lines, numbers=(1, 2, 3)), *note])


def _date(row: Mapping[str, Any]) -> str:
    if row["soft_outlook"] == Outlook.OVER:
        return "over it"
    return figures.NONE if row["soft_days"] is None else figures.day_of(_soft_at(row))
