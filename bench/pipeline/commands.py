"""Whole commands as operators run them, on the tables of a generated fleet: the processor time, wall time and
memory of all their processes.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

from bench.pipeline.cost import MAINTAIN, NOTHING_DUE, Command
from bench.pipeline.processes import measured
from bench.pipeline.stored import StoredFleet, store
from kquota_pipeline.maintain.derived import ALL_DERIVED

# The history is of a past year, and has to stay.
_KEPT = ("--retention-days=36500", "--raw-retention-days=36500")
BACKTEST, REPORT = "backtest", "report"


def measure_commands(folder: Path, fleet: StoredFleet, cores: int) -> Iterator[Command]:
    """Yield the cost of each command on tables below the folder: of `maintain` for the last day, when those
    before are closed.

    Raises:
        RuntimeError: a command failed, or did not do what is measured.
    """
    shutil.rmtree(folder, ignore_errors=True)
    if fleet.days > 1:
        store(folder, fleet, range(fleet.days - 1))
        _run(folder, fleet, cores, MAINTAIN, _KEPT)
    store(folder, fleet, range(fleet.days - 1, fleet.days))
    last_day = replace(fleet, days=1)
    said, cost = _run(folder, last_day, cores, MAINTAIN, _KEPT)
    if not closed_one_day(said):
        raise RuntimeError(f"maintain was to close one day, and did: {said}")
    yield cost
    yield _run(folder, fleet, cores, BACKTEST, ["--json"])[1]
    yield _run(folder, fleet, cores, REPORT, [f"--to={folder}/report.html"])[1]


def measure_nothing_due(folder: Path, fleet: StoredFleet, cores: int) -> Iterator[Command]:
    """Yield the cost of `maintain` when records have come to the last day alone, which is still open.

    Raises:
        RuntimeError: a command failed, or did something.
    """
    shutil.rmtree(folder, ignore_errors=True)
    # The history is of a past year: its last day is open as long as a day closes so late.
    age = datetime.now(UTC) - datetime.combine(fleet.last_day, time.min, UTC)
    options = (*_KEPT, f"--closed-after-hours={age / timedelta(hours=1) - 12}")
    store(folder, fleet, range(fleet.days - 1))
    _run(folder, fleet, cores, MAINTAIN, options)
    store(folder, fleet, range(fleet.days - 1, fleet.days))
    said, cost = _run(folder, fleet, cores, MAINTAIN, options)
    if "nothing is due" not in (folder / "log").read_text("utf-8"):
        raise RuntimeError(f"nothing was to be due, but maintain said: {said}")
    yield replace(cost, work=NOTHING_DUE)


def closed_one_day(said: str) -> bool:
    """Whether `maintain` says that it derived one day of each table."""
    return all(re.search(rf"\b{derived.table.name} of 1\b", said) for derived in ALL_DERIVED)


def _run(
    folder: Path, fleet: StoredFleet, cores: int, work: str, options: Sequence[str]
) -> tuple[str, Command]:
    load = os.getloadavg()[0]
    command = [sys.executable, "-m", "kquota_pipeline", *work.split(), f"--tables=file:{folder}/tables"]
    ran = measured([*command, f"--spark=spark.master=local[{cores}]", *options], folder / "log")
    cost = Command(
        work=work,
        cores=cores,
        brokers=fleet.brokers,
        volumes=fleet.volumes,
        days=fleet.days,
        samples=fleet.samples,
        load=load,
        cpu_seconds=ran.cpu_seconds,
        wall_seconds=ran.wall_seconds,
        peak_bytes=ran.peak.tree_bytes,
    )
    return ran.said, cost
