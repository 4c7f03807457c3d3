"""The arrays of a cluster are the same, however its rows are cut into batches, and in whichever order."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kquota_pipeline.backtest.grids import Grids, grids_of
from kquota_pipeline.backtest.policy import LIMITS
from kquota_pipeline.backtest.scene import NONE
from kquota_pipeline.backtest.stage import NO_KEY, PRODUCED, TOPICS, VOLUME

TICK_SECONDS, TICKS = 600, 6
History = dict[tuple[int, int], dict[str, Any]]
VOLUME_KEYS, TERMS_KEYS, ID_KEYS, TOPICS_KEYS = (-5, 7, 9), (11, -12), (21, -22, 23, NO_KEY), (31, NO_KEY)

cells = st.fixed_dictionaries(
    {
        "consumed_bytes": st.integers(0, 100),
        "capacity_bytes": st.integers(100, 200),
        "volume_id_key": st.sampled_from(ID_KEYS),
        "terms_key": st.sampled_from(TERMS_KEYS),
        "is_failed": st.booleans(),
        "is_offline": st.booleans(),
        "fill_ceiling": st.none() | st.integers(0, 9),
        "topics_key": st.sampled_from(TOPICS_KEYS),
    }
)
histories = st.dictionaries(
    st.tuples(st.integers(1, TICKS).map(lambda n: n * TICK_SECONDS), st.sampled_from(VOLUME_KEYS)),
    cells,
    min_size=1,
)


def events_of(history: History) -> pa.Table:
    limits = dict(zip(LIMITS, 2 * ("MinFreePercentage", 5.0), strict=True))
    named: dict[tuple[int, int], list[int]] = {}
    for (tick, key), cell in history.items():
        named.setdefault((key, cell["terms_key"]), []).append(tick)
    volumes = [
        {
            "event": VOLUME,
            "broker_id": VOLUME_KEYS.index(key),
            "name": f"/dev/{key}",
            "key": key,
            "terms_key": terms,
            "mount_point": f"/data/{terms}",
            "first_tick": min(ticks),
            "last_tick": max(ticks),
            **limits,
        }
        for (key, terms), ticks in named.items()
    ]
    others = [
        {"event": TOPICS, "key": TOPICS_KEYS[0], "names": ["topic"]},
        {"event": PRODUCED, "tick": TICK_SECONDS, "produced_bytes": 5.0, "offered_bytes": 6.0},
    ]
    names = {name: None for one in (*volumes[:1], *others) for name in one}
    no_producers = {"producers": None, "unlisted_clients": None}
    return pa.Table.from_pylist([{**names, **no_producers, **one} for one in (*volumes, *others)])


@given(history=histories, sizes=st.lists(st.integers(1, 4), min_size=18), order=st.randoms())
def test_batches_make_no_difference(history: History, sizes: list[int], order: Random) -> None:
    rows = [{"tick": tick, "volume_key": key, **cell} for (tick, key), cell in history.items()]
    order.shuffle(rows)
    whole = pa.Table.from_pylist(rows)
    begins = np.cumsum([0, *sizes])
    batches = (
        batch
        for begin, size in zip(begins.tolist(), sizes, strict=False)
        for batch in whole.slice(begin, size).to_batches()
    )
    grids = grids_of(batches, events_of(history), TICK_SECONDS)
    assert grids is not None
    first = min(tick for tick, _ in history)
    ids: dict[int, set[int]] = {}
    for (tick, key), cell in history.items():
        at = (tick - first) // TICK_SECONDS, grids.keys.index(key)
        check_cell(grids, at, cell)
        ids.setdefault(cell["volume_id_key"], set()).add(int(grids.scene.volume_ids[at]))
    read = [cell for cell in history.values() if not cell["is_offline"]]
    assert np.isnan(grids.observed.consumed_bytes).sum() == grids.scene.terms.size - len(read)
    assert {len(codes) for codes in ids.values()} == {1}
    assert len(set.union(*ids.values())) == len(ids), "each id has a number of its own"


def check_cell(grids: Grids, at: tuple[int, int], cell: dict[str, Any]) -> None:
    scene, ceiling = grids.scene, cell["fill_ceiling"]
    for name in ("consumed_bytes", "capacity_bytes"):
        known = np.nan if cell["is_offline"] else cell[name]
        np.testing.assert_equal(float(getattr(grids.observed, name)[at]), float(known))
    assert scene.all_terms[scene.terms[at]].mount_point == f"/data/{cell['terms_key']}"
    assert (scene.volume_ids[at] == NONE) == (cell["volume_id_key"] == NO_KEY)
    assert (scene.failed[at], scene.offline[at]) == (cell["is_failed"], cell["is_offline"])
    assert scene.topics_at(*at) == (None if cell["topics_key"] == NO_KEY else ("topic",))
    assert scene.fill_ceilings is not None
    np.testing.assert_equal(float(scene.fill_ceilings[at]), np.nan if ceiling is None else float(ceiling))


def test_without_rows_there_are_no_arrays() -> None:
    nothing = pa.Table.from_pylist([{"event": PRODUCED, "tick": 600}])
    assert grids_of(iter(()), nothing, TICK_SECONDS) is None
