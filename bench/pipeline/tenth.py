"""A tenth of a large cluster's year in closed loop, by spark-submit on a standalone cluster: its cost, to be
compared with the constants of `arrays.py`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import yaml

from bench.pipeline.closed import TICK_SECONDS, policies
from bench.pipeline.cost import OnCluster
from bench.pipeline.processes import measured
from bench.pipeline.standalone import document, environment, standalone_cluster, submitted
from bench.pipeline.stored import StoredFleet, store
from kquota_pipeline.backtest.policy import Policy
from kquota_pipeline.tables import CLIENTS, USAGE

TENTH = StoredFleet(brokers=100, volumes=12, days=365, sample_seconds=TICK_SECONDS)
"""Of 1,000 brokers with 12 volumes each: a sample in each of the year's ticks."""
_POLICIES = 32
_DAY_SECONDS = 86_400
# One task at a time: two of a year would hardly fit into 24 GiB with Spark's own processes.
_SETTINGS = {
    "spark.cores.max": "1",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "2g",
    "spark.sql.shuffle.partitions": "2",
}


def measure_tenth(folder: Path, fleet: StoredFleet) -> OnCluster:
    """Run `backtest` on the fleet's tables, which are made below the folder.

    Raises:
        RuntimeError: it failed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    store(folder, fleet, range(fleet.days), (USAGE, CLIENTS))
    wanted = folder / "policies.yml"
    wanted.write_text(
        yaml.safe_dump({"policies": [_document(policy) for policy in policies(_POLICIES)]}), "utf-8"
    )
    load = os.getloadavg()[0]
    with standalone_cluster(folder / "cluster", workers=2, cores=1, memory="2g") as cluster:
        command = [*submitted(cluster.url, folder, _SETTINGS), "backtest", f"--tables=file:{folder}/tables"]
        command += [f"--policies={wanted}", f"--tick-seconds={TICK_SECONDS}", "--json"]
        ran = measured(command, folder / "log", environment(), cluster.pids)
    rows = document(ran.said)
    return OnCluster(
        brokers=fleet.brokers,
        volumes=fleet.volumes,
        days=fleet.days,
        tick_seconds=TICK_SECONDS,
        cells=fleet.brokers * fleet.volumes * fleet.days * _DAY_SECONDS // TICK_SECONDS,
        samples=fleet.samples,
        policies=len(rows),
        policies_that_held=sum(row["open_seconds"] < fleet.days * _DAY_SECONDS for row in rows),
        load=load,
        cpu_seconds=ran.cpu_seconds,
        wall_seconds=ran.wall_seconds,
        peak_bytes=ran.peak.tree_bytes,
        task_bytes=ran.peak.process_bytes,
    )


def _document(policy: Policy) -> dict[str, object]:
    assert policy.limits is not None
    pairs = {"hard": policy.limits.hard, "soft": policy.limits.soft}
    limits = {name: {"type": limit.type.value, "level": float(limit.level)} for name, limit in pairs.items()}
    return {"name": policy.name, "limits": limits}
