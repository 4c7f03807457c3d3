"""Limits that would have kept every disk from filling, with the least that producers had to wait.

Two things decide how early a volume has to act. The hard limit keeps the reserve that docs/sizing.md asks
for. Data of other writers, as replication is, can't be held back: for these the reserve has a share of the
most that the volume gained within an hour, at least 2 % of the capacity. Producers can be slowed: the
distance of the soft limit before the hard one is the volume's gain in some hours of its steepest growth, and
at least the smallest zone that does not oscillate. Which share and how many hours is tried out: each
candidate rules over the history in closed loop, and of those under which no disk filled, the one that delayed
the fewest bytes is recommended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from kquota.policy.limits import Limit, LimitType
from kquota_pipeline.backtest.policy import Limits, Policy
from kquota_pipeline.forecast.series import VOLUME
from kquota_pipeline.recommend.reserve import Producing, Reserve, Sizing, reserve_of

# The candidates: the share of a volume's largest surge that its hard limit keeps room for, and the hours of
# its steepest growth that its throttle zone spans.
ROOM_SHARES = (0.25, 0.5, 1.0)
ZONE_HOURS = (3, 8, 24)
_MIN_HARD_PERCENT, _MAX_HARD_PERCENT = 2.0, 20.0
_MIN_ZONE_PERCENT, _MAX_ZONE_PERCENT = 2.0, 40.0
# Levels are rounded up to half a percent: more digits have no meaning.
_STEP_PERCENT = Fraction(1, 2)
MOST_PERCENT = 99.0
"""Of a volume's capacity, for reserve and zone, with half a percent for the rounding of each."""
_GOVERNOR = "governor"
_MECHANISMS = (_GOVERNOR, "fence")
_HOUR_SECONDS = 3600


class NoSafeLimits(Exception):
    """No candidate kept every disk from filling; the text names the closest one and the filled disk."""


@dataclass(frozen=True, slots=True)
class Need:
    """The needs of a volume, in percent of its capacity: room for replication, its growth in an hour, and the
    least reserve and zone of docs/sizing.md. `others_percent` is the part of the reserve for other writers.
    """

    broker_id: int
    mount_point: str | None
    beyond_percent: float
    growth_percent_per_hour: float
    reserve_percent: float = 0.0
    zone_percent: float = 0.0
    others_percent: float = 0.0
    terms: Reserve | None = None

    def is_kept_by(self, hard_percent: float, soft_percent: float) -> bool:
        """Whether limits of that much free keep the reserve and the zone."""
        return hard_percent >= self.reserve_percent and soft_percent - hard_percent >= self.zone_percent


def needs(hours: DataFrame, ten_minutes: DataFrame, is_tried: Column | None = None) -> DataFrame:
    """Return for each volume how steeply it grew (input: forecast.series.hourly) in the hours that `is_tried`
    names, or in all, and how fast it filled in the whole history (`ten_minutes`: backtest.ten_minutes).

    Columns: cluster_id, broker_id, volume_name, mount_point, capacity_bytes, growth_ratio_per_hour (what an
    hour's growth is below 99 % of the time), surge_ratio (the most that came within an hour), gained_bytes
    (in all hours that it grew in), fill_bytes_per_second (the most between two samples, or in an hour).
    """
    by_hour = Window.partitionBy(*VOLUME).orderBy("hour")
    before, id_before = F.lag("last_bytes").over(by_hour), F.lag("volume_id").over(by_hour)
    # The growth of a new volume is its filling by replication: the content of the replaced one, and no
    # forecast.
    same = id_before.eqNullSafe(F.col("volume_id")) & (F.lag("hour").over(by_hour) == F.col("hour") - 1)
    gained = F.when(same, F.greatest((F.col("last_bytes") - before) / F.col("capacity_bytes"), F.lit(0.0)))
    tried = F.lit(True) if is_tried is None else is_tried
    grown = (
        hours.where("capacity_bytes > 0")
        .withColumn("gained", gained)
        .withColumn("tried", F.when(tried, F.col("gained")))
        .groupBy(*VOLUME)
        .agg(
            F.max_by("mount_point", "hour").alias("mount_point"),
            F.max_by("capacity_bytes", "hour").alias("capacity_bytes"),
            F.coalesce(F.percentile("tried", F.lit(0.99)), F.lit(0.0)).alias("growth_ratio_per_hour"),
            F.coalesce(F.max("tried"), F.lit(0.0)).alias("surge_ratio"),
            F.coalesce(F.sum(F.col("gained") * F.col("capacity_bytes")), F.lit(0.0)).alias("gained_bytes"),
            F.coalesce(F.max(F.col("gained") * F.col("capacity_bytes")), F.lit(0.0)).alias("most_bytes"),
        )
    )
    rate = F.greatest(F.coalesce("rate", F.lit(0.0)), F.col("most_bytes") / _HOUR_SECONDS)
    return (
        grown.join(_fill(ten_minutes), [*VOLUME], "left")
        .withColumn("fill_bytes_per_second", rate)
        .drop("rate", "most_bytes")
    )


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
    return rates.agg(most.alias("rate"))


def producing(ten_minutes: DataFrame, clients: DataFrame, sizing: Sizing) -> dict[str, Producing]:
    """Return what holds producers on the brokers of each cluster, and how many connections they have.

    A broker is without the fence if the governor held producers on it when that last happened. One that has
    never held any is taken to have the fence, as the roles install it.
    """
    held_by = F.max_by(
        "applied_mechanism", F.when(F.col("applied_mechanism").isin(*_MECHANISMS), F.col("at"))
    )
    brokers = ten_minutes.groupBy("cluster_id", "broker_id").agg(held_by.alias("held_by"))
    listed = F.count_distinct("user", "client_id") + F.coalesce(F.max("omitted_clients"), F.lit(0))
    of_broker = clients.groupBy("cluster_id", "broker_id").agg(listed.alias("clients"))
    rows: dict[str, list[Row]] = {}
    for row in brokers.join(of_broker, ["cluster_id", "broker_id"], "left").collect():
        rows.setdefault(row.cluster_id, []).append(row)
    return {
        cluster_id: Producing(
            {
                row.broker_id: (row.clients or 0) if sizing.connections is None else sizing.connections
                for row in own
            },
            frozenset(row.broker_id for row in own if row.held_by == _GOVERNOR),
        )
        for cluster_id, own in rows.items()
    }


def read_needs(rows: Sequence[Row], brokers: Producing, sizing: Sizing) -> list[Need]:
    """Return the collected rows of needs() of a cluster."""
    total = sum(row.gained_bytes for row in rows)
    return [_need(row, total, len(rows), brokers, sizing) for row in rows]


def _need(row: Row, total: float, volumes: int, brokers: Producing, sizing: Sizing) -> Need:
    # Where nothing grew, as much lands on each volume.
    part = row.gained_bytes / total if total > 0 else 1 / volumes
    surge_percent = 100 * row.surge_ratio
    others_percent = min(min(ROOM_SHARES) * surge_percent, _MAX_HARD_PERCENT)
    terms = reserve_of(
        row.fill_bytes_per_second,
        sizing.replication_factor * part,
        others_percent / 100 * row.capacity_bytes,
        brokers,
        sizing,
    )
    return Need(
        row.broker_id,
        row.mount_point,
        surge_percent,
        100 * row.growth_ratio_per_hour,
        100 * terms.bytes / row.capacity_bytes,
        100 * terms.zone_bytes / row.capacity_bytes,
        others_percent,
        terms,
    )


def needs_together(volumes: Sequence[Need]) -> list[Need]:
    """Return the needs for which limits can be set: one for each mount point of a broker, or one for a broker
    that has a volume whose mount point is not known.
    """
    nameless = {need.broker_id for need in volumes if need.mount_point is None}
    places: dict[tuple[int, str | None], list[Need]] = {}
    for need in volumes:
        mount_point = None if need.broker_id in nameless else need.mount_point
        places.setdefault((need.broker_id, mount_point), []).append(need)
    return [_most(own, mount_point) for (_, mount_point), own in places.items()]


def _most(needs_of_place: Sequence[Need], mount_point: str | None) -> Need:
    """Return the needs that cover all of some volumes."""
    first, *others = needs_of_place
    if not others:
        return first
    return Need(
        first.broker_id,
        mount_point,
        max(need.beyond_percent for need in needs_of_place),
        max(need.growth_percent_per_hour for need in needs_of_place),
        max(need.reserve_percent for need in needs_of_place),
        max(need.zone_percent for need in needs_of_place),
        min(need.others_percent for need in needs_of_place),
    )


def candidates(volumes: Sequence[Need]) -> tuple[Policy, ...]:
    """Return a policy for each room and zone, every broker with limits of its own, and the defaults: those
    that keep every reserve and zone. A volume that is too small for its own (`MOST_PERCENT`) leaves none.
    """
    by_broker: dict[int, list[Need]] = {}
    for need in volumes:
        by_broker.setdefault(need.broker_id, []).append(need)
    defaults = Limits()
    policies = [Policy("defaults", limits=defaults, brokers=dict.fromkeys(sorted(by_broker), defaults))]
    for share in ROOM_SHARES:
        for hours in ZONE_HOURS:
            limits = {broker: limits_of(own, share, hours) for broker, own in sorted(by_broker.items())}
            name = f"{share:.0%} of surges, {hours} h of growth"
            policies.append(Policy(name=name, limits=Limits(), brokers=limits))
    return tuple(policy for policy in policies if _keeps(policy, volumes))


def _keeps(policy: Policy, volumes: Iterable[Need]) -> bool:
    """Whether limits keep the reserve and the zone of all volumes."""
    for need in volumes:
        pair = policy.pair(need.broker_id, need.mount_point)
        if pair is None or not need.is_kept_by(float(pair.hard.level), float(pair.soft.level)):
            return False
    return True


def limits_of(volumes: Sequence[Need], room_share: float, zone_hours: int) -> Limits:
    """Return a broker's limits: those that most of its volumes need, and the others by mount point.

    A volume whose mount point is not known can't have limits of its own: then the broker's are the widest.
    """
    pairs = {need: _pair(need, room_share, zone_hours) for need in needs_together(volumes)}
    (hard, soft), _ = min(Counter(pairs.values()).items(), key=lambda item: (-item[1], -item[0][1].level))
    return Limits(
        hard=hard,
        soft=soft,
        volumes={str(need.mount_point): pair for need, pair in pairs.items() if pair != (hard, soft)},
    )


def _pair(need: Need, room_share: float, zone_hours: int) -> tuple[Limit, Limit]:
    room = min(max(room_share * need.beyond_percent, _MIN_HARD_PERCENT), _MAX_HARD_PERCENT)
    # The reserve has the least room for other writers among its terms.
    hard = max(need.reserve_percent - need.others_percent + room, need.reserve_percent)
    hard = min(hard, max(MOST_PERCENT - need.zone_percent, need.reserve_percent))
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
