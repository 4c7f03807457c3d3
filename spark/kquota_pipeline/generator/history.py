"""The history that agents would have written of a generated cluster, as the pipeline's tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kquota_pipeline.accounting.topics import TOPIC_RATES
from kquota_pipeline.generator.fleet import HOUR_SECONDS, Fleet, FleetSize, make_fleet
from kquota_pipeline.generator.fleet import TOPICS as NAMED
from kquota_pipeline.generator.world import HARD_FREE_RATIO, SOFT_FREE_RATIO, World, live
from kquota_pipeline.history import History
from kquota_pipeline.tables import CLIENTS, DECISIONS, EXPIRY, OPERATORS, TOPICS, USAGE

# Decisions and clients are recorded less often than usage: their figures are means over this time.
_SUMMARY_SECONDS = 600
_REPLICAS = 3


def generate(spark: SparkSession, size: FleetSize, clusters: int = 1) -> History:
    """Return the history of generated clusters; the same size gives the same rows."""
    rows = make_rows(size, clusters)
    return History(**{name: spark.createDataFrame(table) for name, table in rows.items()})


def make_rows(size: FleetSize, clusters: int = 1) -> dict[str, pa.Table]:
    """Return the rows of the same history by the names of its tables, before there is a Spark."""
    worlds = [(fleet, live(fleet)) for fleet in (make_fleet(size, number) for number in range(clusters))]
    return {
        name: rows_of([make(*world) for world in worlds], schema) for name, (make, schema) in _MAKERS.items()
    }


def rows_of(frames: Sequence[pd.DataFrame], schema: StructType) -> pa.Table:
    """Return the rows of frames with the columns of a table, in the order of time.

    Spark makes a task of each few thousand rows, and a task writes a file for each day that its rows are of:
    if rows were not in this order, a table of a month would have hundreds of small files.
    """
    frame = pd.concat(frames, ignore_index=True)
    for column in ("at", "until"):
        if column in frame:
            frame[column] = frame[column].dt.tz_localize("UTC")
    for column in set(schema.fieldNames()) - set(frame):
        frame[column] = None
    table = pa.Table.from_pandas(
        frame[schema.fieldNames()], schema=to_arrow_schema(schema), preserve_index=False
    )
    return table.sort_by("at")


def _times(fleet: Fleet, ticks: NDArray[np.int64]) -> pd.Series[pd.Timestamp]:
    start = pd.Timestamp(fleet.size.start).tz_convert("UTC").tz_localize(None)
    return pd.Series(start + pd.to_timedelta(ticks * fleet.size.interval_seconds, unit="s"))


def _envelope(fleet: Fleet, brokers: NDArray[np.int64], ticks: NDArray[np.int64]) -> pd.DataFrame:
    at = _times(fleet, ticks)
    return pd.DataFrame(
        {
            "cluster_id": fleet.cluster_id,
            "broker_id": brokers.astype("int32"),
            "instance_id": "generated",
            "sequence": ticks,
            "at": at,
            "day": at.dt.date,
            "kafka_partition": np.int32(0),
            "kafka_offset": ticks,
        }
    )


def _reports(fleet: Fleet) -> NDArray[np.bool_]:
    """Return which broker's agent wrote a record, [tick, broker]."""
    size = fleet.size
    there = np.ones((size.ticks, size.brokers), dtype=bool)
    for outage in fleet.outages:
        there[outage.begin : outage.end, outage.broker - 1] = False
    for broker, at in fleet.decommissioned:
        there[at:, broker - 1] = False
    return there


def _usage(fleet: Fleet, world: World) -> pd.DataFrame:
    size = fleet.size
    each = size.volumes_per_broker
    there = np.repeat(_reports(fleet), each, axis=1)
    volumes, ticks = np.nonzero(there.T)
    failed = np.zeros_like(there)
    for failure in fleet.failures:
        failed[failure.begin : failure.end, failure.volume] = True
    generation = np.zeros(there.shape, dtype=np.int64)
    for new in fleet.replacements:
        generation[new.at :, new.volume] += 1
    frame = _envelope(fleet, volumes // each + 1, ticks)
    number = volumes % each
    letters = _volume_names(each)
    mounts = np.array([f"/data/{i + 1}" for i in range(each)])
    frame["volume_name"] = letters[number]
    frame["volume_id"] = [f"{v:04d}-{g}" for v, g in zip(volumes, generation[ticks, volumes], strict=True)]
    log_dirs = [[f"{mount}/kafka"] for mount in mounts]
    frame["log_dirs"] = [log_dirs[n] for n in number]
    frame["mount_point"] = mounts[number]
    frame["status"] = np.where(failed[ticks, volumes], "failed", "ok")
    frame["role"] = "data"
    frame["latched"] = world.latched[ticks, volumes]
    frame["capacity_bytes"] = world.capacity_bytes[ticks, volumes]
    frame["consumed_bytes"] = world.consumed_bytes[ticks, volumes]
    for name, free_ratio in (("hard", HARD_FREE_RATIO), ("soft", SOFT_FREE_RATIO)):
        frame[f"{name}_limit_type"] = "MinFreePercentage"
        frame[f"{name}_limit_level"] = 100 * free_ratio
    factor = world.factor[ticks] if size.enforced else np.ones(len(ticks))
    frame["applied_state"] = _states(factor)
    frame["applied_factor"] = factor
    frame["applied_mechanism"] = np.where(factor == 1, "none", "fence")
    return frame


def _states(factor: NDArray[np.float64]) -> NDArray[np.str_]:
    return np.where(factor >= 1, "OPEN", np.where(factor > 0, "THROTTLE", "PAUSE"))


def _decisions(fleet: Fleet, world: World) -> pd.DataFrame:
    state = _states(world.factor)
    before = np.concatenate([["OPEN"], state[:-1]])
    every = max(1, _SUMMARY_SECONDS // fleet.size.interval_seconds)
    written = (np.arange(fleet.size.ticks) % every == 0) | (state != before)
    there = _reports(fleet) & written[:, None]
    brokers, ticks = np.nonzero(there.T)
    frame = _envelope(fleet, brokers + 1, ticks)
    frame["state"] = state[ticks]
    frame["factor"] = np.round(world.factor[ticks], 6)
    frame["fallback"] = world.fallback[ticks]
    frame["mode"] = "enforce" if fleet.size.enforced else "observe"
    frame["previous_state"] = pd.Series(before[ticks]).where(state[ticks] != before[ticks])
    unknown = [_unknown_at(fleet, tick) for tick in range(fleet.size.ticks)]
    reasons = [_reason_at(fleet, world, tick) for tick in range(fleet.size.ticks)]
    frame["reasons"] = pd.Series([reasons[tick] for tick in ticks], dtype=object)
    frame["undetermined"] = pd.Series([unknown[tick] for tick in ticks], dtype=object)
    frame["hold"] = None
    frame["sentence"] = state[ticks]
    return frame


def _unknown_at(fleet: Fleet, tick: int) -> list[dict[str, object]]:
    stale = [(o.broker, "stale") for o in fleet.outages if o.agent_only and o.begin < tick < o.end]
    failed = [(fleet.broker_of(f.volume), "failed") for f in fleet.failures if f.begin <= tick < f.end]
    return [{"broker_id": broker, "cause": cause} for broker, cause in stale + failed]


def _reason(broker_id: object, volume: str | None, cause: str, headroom: float) -> dict[str, object]:
    return {"broker_id": broker_id, "volume": volume, "cause": cause, "headroom": headroom}


def _reason_at(fleet: Fleet, world: World, tick: int) -> list[dict[str, object]]:
    found = []
    if world.fallback[tick]:
        found += [_reason(entry["broker_id"], None, "fallback", 0.0) for entry in _unknown_at(fleet, tick)]
    volume = int(world.worst_volume[tick])
    if volume >= 0:
        free = 1 - float(world.consumed_bytes[tick, volume] / world.capacity_bytes[tick, volume])
        headroom = min(1.0, max(0.0, (free - HARD_FREE_RATIO) / (SOFT_FREE_RATIO - HARD_FREE_RATIO)))
        name = f"/dev/sd{chr(ord('b') + volume % fleet.size.volumes_per_broker)}1"
        soft = "latched" if world.latched[tick, volume] else "soft"
        cause = "hard" if headroom == 0 else soft
        found.append(_reason(fleet.broker_of(volume), name, cause, 0.0 if cause == "latched" else headroom))
    return found


def _by_summary(fleet: Fleet, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sums over _SUMMARY_SECONDS of [tick, …]."""
    every = max(1, _SUMMARY_SECONDS // fleet.size.interval_seconds)
    whole = len(values) // every * every
    return np.asarray(values[:whole].reshape(whole // every, every, *values.shape[1:]).sum(axis=1))


def _leader_shares(fleet: Fleet) -> NDArray[np.float64]:
    """Return the share of each topic's production that a broker leads, [broker, topic]."""
    per_broker = fleet.placement.reshape(fleet.size.brokers, fleet.size.volumes_per_broker, len(NAMED))
    return np.asarray(per_broker.sum(axis=1) / _REPLICAS)


def _clients(fleet: Fleet, world: World) -> pd.DataFrame:
    accepted = _by_summary(fleet, world.accepted_bytes) / _SUMMARY_SECONDS
    offered = _by_summary(fleet, world.offered_bytes) / _SUMMARY_SECONDS
    held = _by_summary(fleet, (1 - world.factor) * fleet.size.enforced) * fleet.size.interval_seconds
    every = max(1, _SUMMARY_SECONDS // fleet.size.interval_seconds)
    there = _reports(fleet)[every - 1 :: every][: len(accepted)]
    shares = _leader_shares(fleet)
    brokers, rows = np.nonzero(there.T)
    frames = []
    base = _envelope(fleet, brokers + 1, (rows + 1) * every - 1)
    observed = (accepted[rows] * shares[brokers]).sum(axis=1)
    baseline = (offered[rows] * shares[brokers]).sum(axis=1)
    for number, topic in enumerate(NAMED):
        for user, client_id, share in topic.clients:
            rate = accepted[rows, number] * shares[brokers, number] * share
            frame = base.copy()
            frame["window_seconds"] = float(_SUMMARY_SECONDS)
            frame["user"] = user
            frame["client_id"] = client_id
            frame["produce_bytes_per_second"] = rate
            frame["fetch_bytes_per_second"] = rate  # each reads its own topic again
            frame["throttled_seconds"] = held[rows]
            frame["limit_bytes_per_second"] = np.nan
            frame["observed_bytes_per_second"] = observed
            frame["baseline_bytes_per_second"] = baseline
            frame["omitted_clients"] = np.int32(0)
            # The fence notes topics while the state is not OPEN.
            frame["topics"] = pd.Series([[topic.name] if seconds > 0 else None for seconds in held[rows]])
            frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _topics(fleet: Fleet, world: World) -> pd.DataFrame:
    """Return the topics on each volume, as each hour's look finds them; there are no others."""
    volumes, looks = _looked_at(fleet)
    frames = []
    for number, topic in enumerate(NAMED):
        bytes_ = world.topic_bytes[:, :, number]
        grown = np.diff(bytes_, axis=0, prepend=np.nan)
        frame = _look_rows(fleet, volumes, looks)
        frame["span_seconds"] = np.where(looks > 0, float(HOUR_SECONDS), np.nan)
        frame["topic"] = topic.name
        frame["bytes"] = bytes_[looks, volumes].astype(np.int64)
        frame["leaving_soon_bytes"] = world.leaving_bytes[looks, volumes, number, 1].astype(np.int64)
        frame["grown_bytes"] = pd.Series(np.round(grown[looks, volumes])).astype("Int64")
        frame["retention_seconds"] = topic.retention_hours * HOUR_SECONDS
        frames.append(frame)
    others = _look_rows(fleet, volumes, looks)
    frames.append(others.assign(topic=None, other_topics=0, bytes=0, leaving_soon_bytes=0))
    return pd.concat(frames, ignore_index=True)


def _expiry(fleet: Fleet, world: World) -> pd.DataFrame:
    """Return when the bytes on each volume leave by themselves, at each hour."""
    volumes, looks = _looked_at(fleet)
    until = world.leaving_bytes.sum(axis=2)
    leaving = np.diff(until, axis=2, prepend=0.0)
    frame = _look_rows(fleet, volumes, looks)
    for number, name in enumerate(("10m", "1h", "6h", "1d", "3d", "7d", "30d", "later")):
        frame[f"leaving_{name}_bytes"] = leaving[looks, volumes, number].astype(np.int64)
    frame["never_bytes"] = 0
    return frame


def _looked_at(fleet: Fleet) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return volume and look of each look of an agent that was there."""
    size = fleet.size
    every = HOUR_SECONDS // size.interval_seconds
    there = np.repeat(_reports(fleet)[::every], size.volumes_per_broker, axis=1)
    volumes, looks = np.nonzero(there.T)
    return volumes, looks


def _look_rows(fleet: Fleet, volumes: NDArray[np.int64], looks: NDArray[np.int64]) -> pd.DataFrame:
    each = fleet.size.volumes_per_broker
    frame = _envelope(fleet, volumes // each + 1, looks * (HOUR_SECONDS // fleet.size.interval_seconds))
    frame["volume_name"] = _volume_names(each)[volumes % each]
    return frame


def _volume_names(each: int) -> NDArray[np.str_]:
    return np.array([f"/dev/sd{chr(ord('b') + number)}1" for number in range(each)])


def _rates(fleet: Fleet, world: World) -> pd.DataFrame:
    """Return each broker's input by topic, as its own metrics would report it."""
    accepted = _by_summary(fleet, world.accepted_bytes) / _SUMMARY_SECONDS
    every = max(1, _SUMMARY_SECONDS // fleet.size.interval_seconds)
    shares = _leader_shares(fleet)
    brokers, rows = np.nonzero(_reports(fleet)[every - 1 :: every][: len(accepted)].T)
    base = _envelope(fleet, brokers + 1, (rows + 1) * every - 1)
    frames = []
    for number, topic in enumerate(NAMED):
        frame = base.copy()
        frame["window_seconds"] = float(_SUMMARY_SECONDS)
        frame["topic"] = topic.name
        frame["bytes_in_per_second"] = accepted[rows, number] * shares[brokers, number]
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _operators(fleet: Fleet, _world: World) -> pd.DataFrame:
    gone = list(fleet.decommissioned)
    ticks = np.array([at for _, at in gone], dtype=np.int64)
    frame = _envelope(fleet, np.ones(len(gone), dtype=np.int64), ticks)
    frame["order_kind"] = "decommission"
    frame["subject_broker_id"] = np.array([broker for broker, _ in gone], dtype="int32")
    frame["withdrawn"] = False
    frame["action"] = None
    frame["until"] = pd.Series([pd.NaT] * len(gone), dtype="datetime64[ns]")
    frame["reason"] = "hardware at its end"
    frame["actor"] = "generator"
    return frame


_MAKERS: Mapping[str, tuple[Callable[[Fleet, World], pd.DataFrame], StructType]] = {
    "usage": (_usage, USAGE.schema),
    "decisions": (_decisions, DECISIONS.schema),
    "clients": (_clients, CLIENTS.schema),
    "operators": (_operators, OPERATORS.schema),
    "topics": (_topics, TOPICS.schema),
    "expiry": (_expiry, EXPIRY.schema),
    "rates": (_rates, TOPIC_RATES),
}
