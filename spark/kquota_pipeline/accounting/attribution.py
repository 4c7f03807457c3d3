"""Whose bytes the disks hold: the bytes of topics, divided among those who wrote to them.

Pure functions on arrays, of one cluster at a time; docs/chargeback.md defines each figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

BEFORE_DAYS = 30
"""How many days before a range still say who writes to which topic."""
# Kafka's default retention: bytes that were written a week ago count half as much as those of today.
_DAILY = 0.5 ** (1 / 7)
_ROUNDS = 30
# A topic with a known writer always has some inflow, however rare the looks are.
_LEAST = 1e-6
FIGURES = ("byte_days", "held_bytes", "growth_bytes", "written_bytes", "read_bytes")
"""The columns of an account that add up."""
CELL = ("cluster_id", "user", "client_id", "topic")
"""The columns that identify a row of an account."""
_OF_TOPICS = ("byte_days", "mean_bytes", "inflow_bytes")


@dataclass(frozen=True, slots=True)
class Writers:
    """Known writers of topics: cell `n` is the client `client[n]` in the topic `topic[n]`, with the bytes
    of the windows that name it, divided evenly among their topics.
    """

    client: Places
    topic: Places
    bytes: Floats


@dataclass(frozen=True, slots=True)
class Shares:
    """Of each cell of `Writers` its share of its topic, and of what its client writes."""

    of_topic: Floats
    of_client: Floats


def divide(writers: Writers, wrote: Floats, flowed_in: Floats, unknown_bytes: float) -> Shares:
    """Return shares by which each client's cells add up to what it wrote, and each topic's, with those of
    unknown writers, to its part of all that was written.

    A topic's part is its part of what flowed in. This is iterative proportional fitting from the cells that
    are known; where both sums can't be had, those of the topics are.

    Args:
        writers: the cells.
        wrote: bytes of each client.
        flowed_in: bytes of each topic, in any unit.
        unknown_bytes: bytes of writers whose topics are not known.
    """
    cells, topics = writers.bytes.copy(), len(flowed_in)
    written = float(wrote.sum()) + unknown_bytes
    flowed = np.maximum(flowed_in, _LEAST * max(float(flowed_in.sum()), 1.0) / max(topics, 1))
    wanted = flowed * (written / flowed.sum()) if topics else flowed
    rest = wanted * _over(unknown_bytes, written)
    for _ in range(_ROUNDS if written > 0 else 0):
        cells *= _ratio(wrote, _sums(writers.client, cells, len(wrote)))[writers.client]
        rest *= _over(unknown_bytes, float(rest.sum()))
        factor = _ratio(wanted, _sums(writers.topic, cells, topics) + rest)
        cells *= factor[writers.topic]
        rest *= factor
    of_topic = cells * _ratio(1.0, _sums(writers.topic, cells, topics) + rest)[writers.topic]
    # A client that has not written lately has its cells of before.
    rows = _sums(writers.client, cells, len(wrote))
    cells = np.where(rows[writers.client] > 0, cells, writers.bytes)
    of_client = cells * _ratio(1.0, _sums(writers.client, cells, len(wrote)))[writers.client]
    return Shares(of_topic if written > 0 else np.zeros_like(cells), of_client)


@dataclass(frozen=True, slots=True)
class Account:
    """`rows` have FIGURES by cluster_id, user, client_id and topic; `shares` have the `ratio` of each
    writer in each topic on the last day. A user or topic that is not known is None, and NaN are held_bytes
    without figures of the last day, and growth_bytes without those of both ends.
    """

    rows: pd.DataFrame
    shares: pd.DataFrame


def account_of_cluster(
    holdings: pd.DataFrame, writings: pd.DataFrame, first: date, last: date
) -> pd.DataFrame:
    """Return who held, wrote and read how much from `first` to `last` in a cluster: CELL, FIGURES, and the
    `ratio` of a known writer in its topic on the last day.

    Args:
        holdings: cluster_id, topic (None: not named), day, byte_days, mean_bytes, inflow_bytes, has_held,
            has_growth (days.by_topic); one row for each topic and day, from BEFORE_DAYS before `first` on.
        writings: cluster_id, user (None: not listed), client_id, topic (None: not known), day,
            written_bytes, read_bytes (with no topic; NaN: none); likewise.
    """
    read = pd.to_numeric(writings["read_bytes"]).fillna(0.0)
    holdings, writings = _without_gaps(holdings), _without_gaps(writings.assign(read_bytes=read))
    (name,) = {*holdings["cluster_id"], *writings["cluster_id"]}
    return _of_cluster(str(name), holdings, writings, first, last)


def joined_account(rows: pd.DataFrame) -> Account:
    """Return the account of several clusters (rows of account_of_cluster)."""
    rows = _without_gaps(rows).sort_values("cluster_id", kind="stable")
    figures = rows[[*FIGURES]]
    shares = rows.loc[rows["ratio"].notna(), [*CELL, "ratio"]]
    kept = (figures != 0).any(axis=1)
    return Account(rows.loc[kept, [*CELL, *FIGURES]].reset_index(drop=True), shares.reset_index(drop=True))


def owners(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return the figures of an account by some of its columns, those who held most first."""
    return _sums_by(rows, by).sort_values("byte_days", ascending=False, kind="stable", ignore_index=True)


def _sums_by(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return the sums of FIGURES; one of which a part is not known is not known."""
    groups = rows.groupby([*by], dropna=False, sort=True)[[*FIGURES]]
    sums, is_known = groups.sum(), groups.count().eq(groups.size(), axis=0)
    return _without_gaps(sums.where(is_known).reset_index())


def or_none(value: float) -> float | None:
    """Return a figure of an account as JSON has it: None is not known."""
    return None if np.isnan(value) else float(value)


def with_groups(rows: pd.DataFrame, groups: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return the rows of an account with the `group` of each user; a user without one is its own."""
    of_user = {user: group for group, users in groups.items() for user in users}
    group = [of_user.get(user, user) for user in rows["user"]]
    found = rows.copy()
    found.insert(1, "group", pd.Series(group, index=rows.index, dtype=object))
    return found


def known_ratios(rows: pd.DataFrame) -> list[tuple[str, float, float]]:
    """Return of each cluster the share of byte-days with a known principal, and with a known topic."""
    found = []
    for name, own in rows.groupby("cluster_id"):
        held = own["byte_days"]
        of_user, of_topic = (float(held[own[column].notna()].sum()) for column in ("user", "topic"))
        found.append((str(name), _over(of_user, float(held.sum())), _over(of_topic, float(held.sum()))))
    return found


def fillers(
    before: Mapping[str | None, float] | None, after: Mapping[str | None, float], shares: pd.DataFrame
) -> dict[str, object]:
    """Return who has made a volume grow, or who holds most of it if no topic has grown on it.

    Args:
        before: bytes of each topic on the volume; None is what is in no topic that is named. Without them
            growth is not known.
        after: likewise, later.
        shares: `Account.shares` of its cluster.

    Keys: `has_grown` (None: not known), `bytes` (of all of them together), and `parts`: user (None: not
    known), topic, bytes.
    """
    grown = {} if before is None else {topic: now - before.get(topic, 0.0) for topic, now in after.items()}
    grown = {topic: size for topic, size in grown.items() if size > 0}
    bytes_ = grown or dict(after)
    parts: dict[tuple[str | None, str | None], float] = {}
    for topic, size in bytes_.items():
        known = shares[shares["topic"] == topic].groupby("user")["ratio"].sum()
        for user, ratio in known.items():
            parts[str(user), topic] = size * float(ratio)
        parts[None, topic] = size * max(0.0, 1.0 - float(known.sum()))
    order = sorted(parts.items(), key=lambda part: -part[1])
    return {
        "has_grown": None if before is None else bool(grown),
        "bytes": float(sum(bytes_.values())),
        # Less than a byte is a rest of rounding.
        "parts": [
            {"user": user, "topic": topic, "bytes": size} for (user, topic), size in order if size >= 1
        ],
    }


def _of_cluster(
    name: str, holdings: pd.DataFrame, writings: pd.DataFrame, first: date, last: date
) -> pd.DataFrame:
    days = [first + timedelta(days=number) for number in range(-BEFORE_DAYS, (last - first).days + 1)]
    # A window in which nothing was written divides nothing, whichever topics it names.
    has_bytes = pd.to_numeric(writings["written_bytes"]) > 0
    known = writings[writings["topic"].notna() & writings["user"].notna() & has_bytes]
    clients = sorted(set(zip(known["user"], known["client_id"], strict=True)))
    strangers = sorted(set(_writers_of(writings)) - set(clients), key=repr)
    everybody = [*clients, *strangers]
    topics = sorted({*holdings["topic"].dropna(), *writings["topic"].dropna()})
    writers = _known_writers(known, clients, topics)
    wrote, read = (
        _grid(writings, _writers_of(writings), everybody, days, figure)
        for figure in ("written_bytes", "read_bytes")
    )
    # The last column has what is in no topic that is named.
    byte_days, mean_bytes, inflow_bytes = (
        _grid(holdings, list(holdings["topic"]), [*topics, None], days, figure) for figure in _OF_TOPICS
    )
    held = np.zeros((3, len(writers.bytes)))
    written = np.zeros(len(writers.bytes))
    lately, flowed_in = np.zeros(wrote.shape[1]), np.zeros(len(topics) + 1)
    for number, day in enumerate(days):
        lately, flowed_in = lately * _DAILY + wrote[number], flowed_in * _DAILY + inflow_bytes[number]
        if day < first:
            continue
        flowed = flowed_in if flowed_in.any() else byte_days[number]
        shares = divide(writers, lately[: len(clients)], flowed, float(lately[len(clients) :].sum()))
        of_day = np.array([byte_days[number], mean_bytes[number], mean_bytes[number]])
        own = of_day[:, writers.topic] * shares.of_topic
        held += own * np.array([[1.0], [day == last], [float(day == last) - float(day == first)]])
        written += wrote[number][writers.client] * shares.of_client
    inside = slice(BEFORE_DAYS, None)
    whole = np.array(
        [byte_days[inside].sum(axis=0), mean_bytes[-1], mean_bytes[-1] - mean_bytes[BEFORE_DAYS]]
    )
    rest = whole - np.array([_sums(writers.topic, own, len(topics) + 1) for own in held])
    has_held, has_growth = _ends(holdings, topics, first, last)
    # Before the first record of clients no topic has known writers.
    divided = np.zeros(len(topics) + 1, dtype=bool)
    if not wrote[: BEFORE_DAYS + 1].any():
        divided[writers.topic] = True
    for number, has in ((1, has_held), (2, has_growth & ~divided)):
        held[number, ~has[writers.topic]] = np.nan
        rest[number, ~has] = np.nan
    nobody, nothing = [(None, None)] * (len(topics) + 1), np.zeros((2, len(topics) + 1))
    elsewhere = wrote[inside].sum(axis=0)
    elsewhere[: len(clients)] = 0.0  # theirs has topics
    cells = _rows(
        name,
        [clients[place] for place in writers.client],
        [topics[place] for place in writers.topic],
        [*held, written, np.zeros_like(written)],
        shares.of_topic,
    )
    parts = [
        cells,
        _rows(name, nobody, [*topics, None], [*rest, *nothing]),
        _rows(
            name,
            everybody,
            [None] * len(everybody),
            [*np.zeros((3, len(everybody))), elsewhere, read[inside].sum(axis=0)],
        ),
    ]
    rows = pd.concat([part for part in parts if len(part)], ignore_index=True)
    ratios = rows.groupby([*CELL], dropna=False, sort=True)["ratio"].sum(min_count=1)
    return _sums_by(rows, CELL).assign(ratio=ratios.to_numpy())


def _ends(
    holdings: pd.DataFrame, topics: Sequence[str], first: date, last: date
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return of each topic, and of what is in none, whether bytes of the last day, and of both ends, are
    known: of any, and of all of the days on which it held some.
    """
    own = holdings[np.array([first <= day <= last for day in holdings["day"]], dtype=bool)]
    place = {topic: number for number, topic in enumerate([*topics, None])}
    some, none = (np.zeros(len(place), dtype=bool) for _ in range(2))
    has_growth = np.ones(len(place), dtype=bool)
    for topic, held, growth in zip(own["topic"], own["has_held"], own["has_growth"], strict=True):
        if pd.isna(held):
            continue
        (some if held else none)[place[topic]] = True
        has_growth[place[topic]] &= bool(growth)
    return some | ~none, has_growth


def _writers_of(rows: pd.DataFrame) -> list[tuple[str | None, str | None]]:
    return list(zip(rows["user"], rows["client_id"], strict=True))


def _rows(
    cluster_id: str, writers: Sequence[tuple[str | None, str | None]], topics: Sequence[str | None],
    figures: Sequence[Floats], ratio: Floats | float = np.nan,
) -> pd.DataFrame:  # fmt: skip
    return pd.DataFrame(
        {
            "cluster_id": cluster_id,
            "user": pd.Series([user for user, _ in writers], dtype=object),
            "client_id": pd.Series([client_id for _, client_id in writers], dtype=object),
            "topic": pd.Series(list(topics), dtype=object),
            **dict(zip(FIGURES, figures, strict=True)),
            "ratio": ratio,
        }
    )


def _without_gaps(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with None where a name is not known: pandas has several values for that."""
    found = rows.copy()
    for name in ("group", *CELL):
        if name in rows:
            names = [None if pd.isna(one) else one for one in rows[name]]
            found[name] = pd.Series(names, rows.index, dtype=object)
    return found


def _known_writers(known: pd.DataFrame, clients: Sequence[tuple[str, str]], topics: Sequence[str]) -> Writers:
    cells = known.groupby(["user", "client_id", "topic"], as_index=False)[["written_bytes"]].sum()
    of_client: dict[object, int] = {client: place for place, client in enumerate(clients)}
    of_topic = {topic: place for place, topic in enumerate(topics)}
    return Writers(
        np.array([of_client[user, client_id] for user, client_id in _writers_of(cells)], dtype=np.int64),
        np.array([of_topic[topic] for topic in cells["topic"]], dtype=np.int64),
        cells["written_bytes"].to_numpy(dtype=float),
    )


def _grid(
    rows: pd.DataFrame, keys: Sequence[object], names: Sequence[object], days: Sequence[date], figure: str
) -> Floats:
    """Return the sums of a figure by day and key; [day, name]."""
    of_day = {day: place for place, day in enumerate(days)}
    of_name = {name: place for place, name in enumerate(names)}
    found = np.zeros((len(days), len(names)))
    for day, key, value in zip(rows["day"], keys, rows[figure], strict=True):
        if day in of_day:
            found[of_day[day], of_name[key]] += value
    return found


def _sums(places: Places, values: Floats, count: int) -> Floats:
    return np.bincount(places, weights=values, minlength=count).astype(float)


def _ratio(part: Floats | float, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)


def _over(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
