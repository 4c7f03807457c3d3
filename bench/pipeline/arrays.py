"""A task of the closed loop without Spark: the time and the memory for each cell, a volume in a tick."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import psutil
import pyarrow as pa
from numpy.typing import NDArray

from bench.pipeline.closed import CAPACITY_BYTES, MB, START_SECONDS, TICK_SECONDS, Fleet, policies
from bench.pipeline.figures import Arrays
from bench.pipeline.processes import peak_memory
from kquota_pipeline.backtest.closed_loop import simulate
from kquota_pipeline.backtest.flows import flows_of
from kquota_pipeline.backtest.grids import grids_of
from kquota_pipeline.backtest.policy import LIMITS
from kquota_pipeline.backtest.stage import PRODUCED, VOLUME

_ROWS_PER_BATCH = 10_000


def measure_arrays(fleet: Fleet) -> Arrays:
    """Simulate one policy, and all, on rows of the fleet's size in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(_arrays, fleet).result()


def _arrays(fleet: Fleet) -> Arrays:
    grids_of(*_handed_over(Fleet(brokers=1, days=1)), TICK_SECONDS)  # imports what it needs
    rows, events = _handed_over(fleet)
    before = psutil.Process().memory_info().rss
    with peak_memory(interval_seconds=0.02) as peak:
        begun = time.process_time()
        grids = grids_of(rows, events, TICK_SECONDS)
        assert grids is not None
        flows = flows_of(grids.observed, 3.0)
        prepared = time.process_time()
        simulate(grids.scene, flows, policies(1))
        one = time.process_time()
        simulate(grids.scene, flows, policies(fleet.policies))
        ended = time.process_time()
    return Arrays(
        cells=sum(batch.num_rows for batch in rows),
        policies=fleet.policies,
        prepare_seconds=prepared - begun,
        one_policy_seconds=one - prepared,
        all_policies_seconds=ended - one,
        bytes=peak.tree_bytes - before,
    )


def _handed_over(fleet: Fleet) -> tuple[list[pa.RecordBatch], pa.Table]:
    """Return a cluster's rows and events as Spark hands them to a task: those of `backtest.stage`."""
    ticks = START_SECONDS + (np.arange(fleet.ticks) + 1) * TICK_SECONDS
    keys = np.arange(fleet.brokers * fleet.volumes, dtype=np.int64) + 1
    cells = len(ticks) * len(keys)
    waves = np.linspace(0.4, 0.8, len(keys)) + 0.1 * (1 + np.sin(np.arange(len(ticks)) / 46))[:, None]
    rows = pa.table(
        {
            "tick": pa.array(np.repeat(ticks, len(keys))),
            "volume_key": pa.array(np.tile(keys, len(ticks))),
            "consumed_bytes": pa.array((CAPACITY_BYTES * waves).astype(np.int64).ravel()),
            "capacity_bytes": pa.repeat(CAPACITY_BYTES, cells),
            "volume_id_key": pa.array(np.tile(keys, len(ticks))),
            "terms_key": pa.repeat(1, cells),
            "is_failed": pa.repeat(pa.scalar(value=False), cells),
            "is_offline": pa.repeat(pa.scalar(value=False), cells),
        }
    )
    return rows.to_batches(max_chunksize=_ROWS_PER_BATCH), _events(fleet, ticks, keys)


def _events(fleet: Fleet, ticks: NDArray[np.int64], keys: NDArray[np.int64]) -> pa.Table:
    limits = dict(zip(LIMITS, (*("MinFreePercentage", 5.0), *("MinFreePercentage", 15.0)), strict=True))
    volumes = [
        {
            "event": VOLUME,
            "broker_id": int(key) // fleet.volumes,
            "name": f"/dev/sd{key}",
            "key": int(key),
            "terms_key": 1,
            "mount_point": "/data",
            "first_tick": int(ticks[0]),
            "last_tick": int(ticks[-1]),
            **limits,
        }
        for key in keys
    ]
    produced = fleet.brokers * 15.0 * MB * TICK_SECONDS
    of_ticks = [
        {"event": PRODUCED, "tick": int(tick), "produced_bytes": produced, "offered_bytes": produced}
        for tick in ticks
    ]
    names = {name: None for one in (*volumes[:1], *of_ticks[:1]) for name in one}
    nothing = {"producers": [], "unlisted_clients": 0, "names": []}
    return pa.Table.from_pylist([{**names, **nothing, **one} for one in (*volumes, *of_ticks)])
