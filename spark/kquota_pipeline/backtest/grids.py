"""A cluster's rows as the arrays of the closed loop (input: stage.samples and stage.happenings)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kquota_pipeline.backtest.events import DECOMMISSION, HELD, PRODUCERS, UNKNOWN
from kquota_pipeline.backtest.flows import Floats, Observed
from kquota_pipeline.backtest.policy import LIMITS, recorded_limits
from kquota_pipeline.backtest.producers import named, topics_of
from kquota_pipeline.backtest.scene import NONE, Codes, Scene, Terms, VolumePlace, Writers
from kquota_pipeline.backtest.stage import NO_KEY, PRODUCED, TOPICS, VOLUME


@dataclass(frozen=True, slots=True)
class Grids:
    """The scene of a cluster and its history, on an even grid; `keys` are those of its volumes."""

    scene: Scene
    observed: Observed
    keys: Sequence[int]


def grids_of(rows: pa.Table, events: pa.Table, tick_seconds: int) -> Grids | None:
    """Return the arrays; None where there is no row."""
    if not rows.num_rows:
        return None
    row_ticks = _numbers(rows, "tick")
    ticks = np.arange(row_ticks.min(), row_ticks.max() + tick_seconds, tick_seconds)
    index = {int(tick): number for number, tick in enumerate(ticks)}
    named_volumes = of_kind(events, VOLUME)
    volumes = named_volumes.drop_duplicates("key").sort_values(["broker_id", "name"])
    row = (row_ticks - ticks[0]) // tick_seconds
    column = _places(_numbers(rows, "volume_key"), volumes["key"].to_numpy(np.int64))
    shape = len(ticks), len(volumes)

    def grid(values: NDArray[Any], empty: object) -> NDArray[Any]:
        cells = np.full(shape, empty, dtype=values.dtype)
        cells[row, column] = values
        return cells

    all_terms = named_volumes.drop_duplicates("terms_key")
    produced, offered = _of_cluster(events, ticks)
    observed = Observed(
        grid(_numbers(rows, "consumed_bytes").astype(float), np.nan),
        grid(_numbers(rows, "capacity_bytes").astype(float), np.nan),
        produced,
        offered,
    )
    topics = all_topics = None
    if "topics_key" in rows.column_names:
        all_topics, topics = _topics(events, _numbers(rows, "topics_key"))
    scene = Scene(
        ticks=ticks,
        volumes=[
            VolumePlace(int(broker), name)
            for broker, name in zip(volumes["broker_id"], volumes["name"], strict=True)
        ],
        terms=grid(_places(_numbers(rows, "terms_key"), all_terms["terms_key"].to_numpy(np.int64)), 0),
        all_terms=[_terms(one) for one in all_terms.to_dict("records")],
        volume_ids=grid(_codes(_numbers(rows, "volume_id_key")), NONE),
        failed=grid(_numbers(rows, "is_failed").astype(bool), empty=False),
        unknown=_brokers(events, UNKNOWN, index),
        decommissioned=_brokers(events, DECOMMISSION, index),
        producers=_producers(events, index),
        held={tick for tick, _ in _events_at(events, HELD, index)},
        fill_ceilings=grid(_numbers(rows, "fill_ceiling").astype(float), np.nan)
        if "fill_ceiling" in rows.column_names
        else None,
        topics=None if topics is None else grid(topics, NONE),
        all_topics=all_topics or (),
    )
    return Grids(scene, observed, volumes["key"].tolist())


def of_kind(events: pa.Table, kind: str) -> pd.DataFrame:
    """Return the rows of a kind: pandas keeps whole numbers only in columns without gaps."""
    found: pd.DataFrame = events.filter(pc.equal(events["event"], kind)).to_pandas()
    return found


def _numbers(rows: pa.Table, name: str) -> NDArray[Any]:
    """Return a column; one with nulls has fractions, with nan for them."""
    return np.asarray(rows[name].to_numpy())


def _places(keys: NDArray[np.int64], known: NDArray[np.int64]) -> Codes:
    """Return where each key is among those that are known."""
    order = np.argsort(known)
    return order[np.searchsorted(known, keys, sorter=order)].astype(np.int32)


def _codes(keys: NDArray[np.int64]) -> Codes:
    """Return a small number for each key, NONE for none."""
    codes = np.unique(keys, return_inverse=True)[1].astype(np.int32)
    return np.where(keys == NO_KEY, np.int32(NONE), codes)


def _topics(events: pa.Table, keys: NDArray[np.int64]) -> tuple[list[Any], Codes]:
    """Return the topics that are named, and for each row their place there; NONE where an agent would not
    name them.
    """
    known = of_kind(events, TOPICS)
    read = {
        int(key): topics_of(tuple(names)) for key, names in zip(known["key"], known["names"], strict=True)
    }
    usable = [key for key, names in read.items() if names is not None]
    places = {key: place for place, key in enumerate(usable)}
    distinct, inverse = np.unique(keys, return_inverse=True)
    codes = np.array([places.get(int(key), NONE) for key in distinct], dtype=np.int32)
    return [read[key] for key in usable], codes[inverse]


def _terms(one: dict[Any, Any]) -> Terms:
    def known(value: Any) -> Any:
        return None if value is None or (isinstance(value, float) and np.isnan(value)) else value

    return Terms(known(one["mount_point"]), recorded_limits(*[known(one[name]) for name in LIMITS]))


def _producers(events: pa.Table, index: dict[int, int]) -> dict[int, Writers]:
    writing = of_kind(events, PRODUCERS)
    columns = ("tick", "producers", "unlisted_clients")
    return {
        index[tick]: Writers(named(producing), int(unlisted))
        for tick, producing, unlisted in zip(*(writing[name] for name in columns), strict=True)
        if tick in index
    }


def _of_cluster(events: pa.Table, ticks: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return produced and offered bytes of every tick; a tick without a record of clients is as the one
    before.
    """
    produced = of_kind(events, PRODUCED).set_index("tick")[["produced_bytes", "offered_bytes"]]
    filled = produced.reindex(ticks).ffill().fillna(0.0)
    return filled["produced_bytes"].to_numpy(float), filled["offered_bytes"].to_numpy(float)


def _brokers(events: pa.Table, kind: str, index: dict[int, int]) -> dict[int, frozenset[int]]:
    found: dict[int, set[int]] = {}
    for tick, broker in _events_at(events, kind, index):
        found.setdefault(tick, set()).add(broker)
    return {tick: frozenset(brokers) for tick, brokers in found.items()}


def _events_at(events: pa.Table, kind: str, index: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the number of the tick and the broker id of each event of a kind; -1 of one about none."""
    found = of_kind(events, kind)
    brokers = found["broker_id"].fillna(-1).astype(int).tolist()
    for tick, broker in zip(found["tick"].tolist(), brokers, strict=True):
        if tick in index:
            yield index[tick], broker
