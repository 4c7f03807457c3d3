"""A cluster's rows as the arrays of the closed loop (input: stage.samples and stage.happenings)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kquota.policy.topic_scope import Topics
from kquota_pipeline.backtest.events import DECOMMISSION, HELD, PRODUCERS, UNKNOWN
from kquota_pipeline.backtest.flows import Floats, Observed
from kquota_pipeline.backtest.policy import LIMITS, recorded_limits
from kquota_pipeline.backtest.producers import named, topics_of
from kquota_pipeline.backtest.scene import NONE, Scene, Terms, VolumePlace, Writers
from kquota_pipeline.backtest.stage import NO_KEY, PRODUCED, TOPICS, VOLUME

# By the column of `stage.samples`: what a cell has without a row.
_EMPTY: Mapping[str, Any] = {
    "consumed_bytes": np.nan,
    "capacity_bytes": np.nan,
    "terms_key": np.int32(0),
    "volume_id_key": np.int32(NONE),
    "is_failed": False,
    "is_offline": False,
    "fill_ceiling": np.nan,
    "topics_key": np.int32(NONE),
}


@dataclass(frozen=True, slots=True)
class Grids:
    """The scene of a cluster and its history, on an even grid; `keys` are those of its volumes."""

    scene: Scene
    observed: Observed
    keys: Sequence[int]


def grids_of(rows: Iterable[pa.RecordBatch], events: pa.Table, tick_seconds: int) -> Grids | None:
    """Return the arrays; None where there is no row. Each batch is read once, and none is kept."""
    named_volumes = of_kind(events, VOLUME)
    if named_volumes.empty:
        return None
    begin, end = int(named_volumes["first_tick"].min()), int(named_volumes["last_tick"].max())
    ticks = np.arange(begin, end + tick_seconds, tick_seconds)
    index = {int(tick): number for number, tick in enumerate(ticks)}
    volumes = named_volumes.drop_duplicates("key").sort_values(["broker_id", "name"])
    all_terms = named_volumes.drop_duplicates("terms_key")
    all_topics = _topics(events) if "names" in events.column_names else {}
    columns, shape = pd.Index(volumes["key"]), (len(ticks), len(volumes))
    codes = {
        "terms_key": pd.Index(all_terms["terms_key"]).get_indexer,
        "volume_id_key": _Ids().codes,
        "topics_key": pd.Index(list(all_topics), dtype=np.int64).get_indexer,
    }
    cells: dict[str, NDArray[Any]] = {}
    for batch in rows:
        tick, column = (
            (_numbers(batch, "tick") - begin) // tick_seconds,
            columns.get_indexer(_numbers(batch, "volume_key")),
        )
        # A volume may be offline before and after it could be read, or all the time.
        known = (tick >= 0) & (tick < len(ticks)) & (column >= 0)
        place = tick[known], column[known]
        for name in _EMPTY.keys() & set(batch.schema.names):
            values = _numbers(batch, name)[known]
            if name not in cells:
                cells[name] = np.full(shape, _EMPTY[name])
            cells[name][place] = codes[name](values) if name in codes else values
    for name in ("consumed_bytes", "capacity_bytes"):  # of a volume that can't be read they are old
        cells[name][cells["is_offline"]] = np.nan
    produced, offered = _of_cluster(events, ticks)
    scene = Scene(
        ticks=ticks,
        volumes=[
            VolumePlace(int(broker), name)
            for broker, name in zip(volumes["broker_id"], volumes["name"], strict=True)
        ],
        terms=cells["terms_key"],
        all_terms=[_terms(one) for one in all_terms.to_dict("records")],
        volume_ids=cells["volume_id_key"],
        failed=cells["is_failed"],
        offline=cells["is_offline"],
        unknown=_brokers(events, UNKNOWN, index),
        decommissioned=_brokers(events, DECOMMISSION, index),
        producers=_producers(events, index),
        held={tick for tick, _ in _events_at(events, HELD, index)},
        fill_ceilings=cells.get("fill_ceiling"),
        topics=cells.get("topics_key"),
        all_topics=list(all_topics.values()),
    )
    observed = Observed(cells["consumed_bytes"], cells["capacity_bytes"], produced, offered)
    return Grids(scene, observed, volumes["key"].tolist())


class _Ids:
    """Small numbers for the keys of volumes' ids, in the order in which they come; NONE for none."""

    def __init__(self) -> None:
        self._known = pd.Index([], dtype=np.int64)

    def codes(self, keys: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the number of each key."""
        given = pd.Index(keys)
        self._known = self._known.append(given[self._known.get_indexer(given) < 0].unique())
        return np.where(keys == NO_KEY, NONE, self._known.get_indexer(given))


def of_kind(events: pa.Table, kind: str) -> pd.DataFrame:
    """Return the rows of a kind: pandas keeps whole numbers only in columns without gaps."""
    found: pd.DataFrame = events.filter(pc.equal(events["event"], kind)).to_pandas()
    return found


def _numbers(batch: pa.RecordBatch, name: str) -> NDArray[Any]:
    """Return a column; one with nulls has fractions, with nan for them."""
    return np.asarray(batch[name].to_numpy(zero_copy_only=False))


def _topics(events: pa.Table) -> dict[int, Topics]:
    """Return the topics that are named, by their key, as far as an agent would name them."""
    known = of_kind(events, TOPICS)
    read = {
        int(key): topics_of(tuple(names)) for key, names in zip(known["key"], known["names"], strict=True)
    }
    return {key: names for key, names in read.items() if names is not None}


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
