"""Limits that would have kept every disk from filling, with the least that producers had to wait.

Two things decide how early a volume has to act. Data that arrives by replication can't be held back: the hard
limit keeps room for a share of the most that the volume gained within an hour, for 2 % of the capacity at
least, and always for the reserve that docs/sizing.md asks for. Producers can be slowed: the distance of the
soft limit before the hard one is the volume's gain in some hours of its steepest growth, and at least the
smallest zone that does not oscillate. Which share and how many hours is tried out: each candidate rules over
the history in closed loop, and of those under which no disk filled, the one that delayed the fewest bytes is
recommended.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from kquota.core.limits import Limit, LimitType
from kquota_pipeline.backtest.policy import Limits, Policy
from kquota_pipeline.forecast.series import VOLUME

# The candidates: the share of a volume's largest surge that its hard limit keeps room for, and the hours of
# its steepest growth that its throttle zone spans.
ROOM_SHARES = (0.25, 0.5, 1.0)
ZONE_HOURS = (3, 8, 24)
_MIN_HARD_PERCENT, _MAX_HARD_PERCENT = 2.0, 20.0
_MIN_ZONE_PERCENT, _MAX_ZONE_PERCENT = 2.0, 40.0
# Levels are rounded up to half a percent: more digits have no meaning.
_STEP_PERCENT = Fraction(1, 2)


class NoSafeLimits(Exception):
    """No candidate kept every disk from filling; the text names the closest one and the filled disk."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """The figures of docs/sizing.md that the history does not have, for brokers with the fence.

    `reaction_seconds` is τ, `window_seconds` W, the brokers' quota window, and `request_bytes` s, the largest
    produce request. `replication_factor` is the mean one of the topics.
    """

    reaction_seconds: float = 2.0
    window_seconds: float = 11.0
    request_bytes: int = 1024 * 1024
    replication_factor: float = 3.0

    @property
    def delay_seconds(self) -> float:
        """How long a volume fills at full speed after it has crossed a limit."""
        return self.reaction_seconds + self.window_seconds / 2


@dataclass(frozen=True, slots=True)
class Need:
    """The needs of a volume, in percent of its capacity: room for replication, its growth in an hour, and the
    least reserve and zone of docs/sizing.md.
    """

    broker_id: int
    mount_point: str | None
    beyond_percent: float
    growth_percent_per_hour: float
    reserve_percent: float = 0.0
    zone_percent: float = 0.0

    def is_kept_by(self, hard_percent: float, soft_percent: float) -> bool:
        """Whether limits of that much free keep the reserve and the zone."""
        return hard_percent >= self.reserve_percent and soft_percent - hard_percent >= self.zone_percent


def needs(
    hours: DataFrame,
    ten_minutes: DataFrame | None = None,
    clients: DataFrame | None = None,
    sizing: Sizing | None = None,
) -> DataFrame:
    """Return for each volume how steeply it grew (input: forecast.series.hourly), and the reserve and zone of
    docs/sizing.md.

    Without `ten_minutes` (backtest.ten_minutes) the fill rate is the highest of an hour, and without
    `clients` no request is in flight.

    Columns: cluster_id, broker_id, volume_name, mount_point, growth_ratio_per_hour (what an hour's growth is
    below 99 % of the time), surge_ratio (the most that came within an hour, beyond that), capacity_bytes,
    fill_bytes_per_second (the most between two samples), reserve_ratio, zone_ratio.
    """
    by_hour = Window.partitionBy(*VOLUME).orderBy("hour")
    before, id_before = F.lag("last_bytes").over(by_hour), F.lag("volume_id").over(by_hour)
    # The growth of a new volume is its filling by replication: the content of the replaced one, and no
    # forecast.
    same = id_before.eqNullSafe(F.col("volume_id")) & (F.lag("hour").over(by_hour) == F.col("hour") - 1)
    gained = F.when(same, F.greatest((F.col("last_bytes") - before) / F.col("capacity_bytes"), F.lit(0.0)))
    grown = (
        hours.where("capacity_bytes > 0")
        .withColumn("gained", gained)
        .groupBy(*VOLUME)
        .agg(
            F.max_by("mount_point", "hour").alias("mount_point"),
            F.coalesce(F.percentile("gained", F.lit(0.99)), F.lit(0.0)).alias("growth_ratio_per_hour"),
            F.coalesce(F.max("gained"), F.lit(0.0)).alias("surge_ratio"),
            F.max_by("capacity_bytes", "hour").alias("capacity_bytes"),
            F.coalesce(F.sum(F.col("gained") * F.col("capacity_bytes")), F.lit(0.0)).alias("gained_bytes"),
        )
    )
    hourly_rate = F.col("surge_ratio") * F.col("capacity_bytes") / 3600
    filled = (
        grown.withColumn("fill_bytes_per_second", hourly_rate)
        if ten_minutes is None
        else grown.join(_fill(ten_minutes), [*VOLUME], "left")
    )
    return _sized(filled, clients, sizing or Sizing())


def _fill(ten_minutes: DataFrame) -> DataFrame:
    """Return the most that each volume filled between two samples, in bytes per second.

    The rows have it within each day; the steps from the last sample of a day to the next one are added.
    """
    read = ten_minutes.where((F.col("role") == "data") & (F.col("status") == "ok"))
    # An id as a number: a text that is aggregated would sort the rows.
    by_day = (
        read.withColumn("id", F.xxhash64("volume_id"))
        .groupBy(*VOLUME, "day")
        .agg(
            F.max("fill_bytes_per_second").alias("within"),
            *[F.min_by(name, "first_at").alias(f"first_{name}") for name in ("first_bytes", "id")],
            *[F.max_by(name, "at").alias(f"last_{name}") for name in ("consumed_bytes", "id")],
            F.unix_micros(F.min("first_at")).alias("first_micros"),
            F.unix_micros(F.max("at")).alias("last_micros"),
        )
    )
    in_turn = Window.partitionBy(*VOLUME).orderBy("day")

    def before(name: str) -> Column:
        return F.lag(name).over(in_turn)

    seconds = (F.col("first_micros") - before("last_micros")) / 1e6
    step = (F.col("first_first_bytes") - before("last_consumed_bytes")) / seconds
    same = (before("last_id") == F.col("first_id")) & (seconds > 0)
    rates = by_day.withColumn("step", F.when(same, step)).groupBy(*VOLUME)
    most = F.greatest(F.max("within"), F.max("step"), F.lit(0.0))
    return rates.agg(most.alias("fill_bytes_per_second"))


def _sized(volumes: DataFrame, clients: DataFrame | None, sizing: Sizing) -> DataFrame:
    """Return the volumes with reserve_ratio and zone_ratio."""
    if clients is None:
        joined = volumes.withColumn("connections", F.lit(0))
    else:
        listed = F.count_distinct("user", "client_id") + F.coalesce(F.max("omitted_clients"), F.lit(0))
        of_broker = clients.groupBy("cluster_id", "broker_id").agg(listed.alias("connections"))
        of_cluster = of_broker.groupBy("cluster_id").agg(F.sum("connections").alias("connections"))
        joined = volumes.join(of_cluster, "cluster_id", "left")
    total = F.sum("gained_bytes").over(Window.partitionBy("cluster_id"))
    share = F.when(total > 0, sizing.replication_factor * F.col("gained_bytes") / total).otherwise(0.0)
    rate = F.col("fill_bytes_per_second")
    in_flight = share * F.coalesce("connections", F.lit(0)) * sizing.request_bytes
    reserve = rate * sizing.delay_seconds + in_flight
    zone = math.e * rate * (sizing.delay_seconds + 1)
    return joined.withColumns(
        {
            "reserve_ratio": reserve / F.col("capacity_bytes"),
            "zone_ratio": zone / F.col("capacity_bytes"),
        }
    ).drop("connections", "gained_bytes")


def read_needs(rows: Iterable[Row]) -> list[Need]:
    """Return the collected rows of needs()."""
    return [
        Need(
            row.broker_id,
            row.mount_point,
            100 * row.surge_ratio,
            100 * row.growth_ratio_per_hour,
            100 * row.reserve_ratio,
            100 * row.zone_ratio,
        )
        for row in rows
    ]


def candidates(volumes: Sequence[Need]) -> tuple[Policy, ...]:
    """Return a policy for each room and zone, every broker with limits of its own, and the defaults if they
    keep every reserve and zone.
    """
    by_broker: dict[int, list[Need]] = {}
    for need in volumes:
        by_broker.setdefault(need.broker_id, []).append(need)
    policies = []
    defaults = Limits()
    levels = float(defaults.hard.level), float(defaults.soft.level)
    if all(need.is_kept_by(*levels) for need in volumes):
        policies.append(
            Policy("defaults", limits=defaults, brokers=dict.fromkeys(sorted(by_broker), defaults))
        )
    for share in ROOM_SHARES:
        for hours in ZONE_HOURS:
            limits = {broker: limits_of(own, share, hours) for broker, own in sorted(by_broker.items())}
            name = f"{share:.0%} of surges, {hours} h of growth"
            policies.append(Policy(name=name, limits=Limits(), brokers=limits))
    return tuple(policies)


def limits_of(volumes: Sequence[Need], room_share: float, zone_hours: int) -> Limits:
    """Return a broker's limits: those that most of its volumes need, and the others by mount point.

    A volume whose mount point is not known can't have limits of its own: then the broker's are the widest.
    """
    pairs = {need: _pair(need, room_share, zone_hours) for need in volumes}
    if any(need.mount_point is None for need in pairs):
        hard = max((pair[0] for pair in pairs.values()), key=lambda limit: limit.level)
        zone = max(soft.level - hard.level for hard, soft in pairs.values())
        return Limits(hard=hard, soft=Limit.of(hard.type, min(hard.level + zone, Fraction(100))))
    (hard, soft), _ = min(Counter(pairs.values()).items(), key=lambda item: (-item[1], -item[0][1].level))
    return Limits(
        hard=hard,
        soft=soft,
        volumes={str(need.mount_point): pair for need, pair in pairs.items() if pair != (hard, soft)},
    )


def _pair(need: Need, room_share: float, zone_hours: int) -> tuple[Limit, Limit]:
    hard = min(max(room_share * need.beyond_percent, _MIN_HARD_PERCENT), _MAX_HARD_PERCENT)
    hard = max(hard, need.reserve_percent)
    zone = min(max(need.growth_percent_per_hour * zone_hours, _MIN_ZONE_PERCENT), _MAX_ZONE_PERCENT)
    zone = max(zone, need.zone_percent)
    hard_level = min(_rounded_up(hard), 100 - _STEP_PERCENT)
    return (
        Limit.of(LimitType.MIN_FREE_PERCENTAGE, hard_level),
        Limit.of(LimitType.MIN_FREE_PERCENTAGE, min(hard_level + _rounded_up(zone), Fraction(100))),
    )


def _rounded_up(percent: float) -> Fraction:
    return -(-Fraction(percent) // _STEP_PERCENT) * _STEP_PERCENT


def choose(policies: Sequence[Policy], outcomes: Iterable[Row]) -> Policy:
    """Return the policy under which no disk filled and producers waited least.

    Args:
        policies: the candidates.
        outcomes: the rows of closed_loop_summary for one cluster.

    Raises:
        NoSafeLimits: under every candidate some disk filled.
    """
    rows = sorted(
        outcomes, key=lambda row: (row.first_filled_tick is not None, row.delayed_bytes, row.policy)
    )
    by_name = {policy.name: policy for policy in policies}
    best = next((row for row in rows if row.policy in by_name), None)
    if best is None:
        raise NoSafeLimits("there is no history to try limits on")
    if best.first_filled_tick is not None:
        raise NoSafeLimits(
            f"under every candidate a disk filled; {best.policy!r} delayed least, and volume "
            f"{best.fullest_volume} of broker {best.fullest_broker_id} filled: no quota holds what "
            "replication brings"
        )
    return by_name[best.policy]
