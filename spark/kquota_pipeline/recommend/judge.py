"""Recommendations that are judged on weeks which were held back from finding them, and their risk.

The needs and the choice come from the history before the last week, or the last two of six and more. The
chosen limits go on in the weeks held back, and what happens there is what they are judged by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kquota_pipeline.backtest.job import closed_loop, closed_loop_summary
from kquota_pipeline.backtest.policy import Policy
from kquota_pipeline.history import History
from kquota_pipeline.recommend.limits import (
    MOST_PERCENT,
    Need,
    NoSafeLimits,
    candidates,
    choose,
    needs,
    needs_together,
    producing,
    read_needs,
)
from kquota_pipeline.recommend.reserve import Producing, Sizing

_WEEK = timedelta(days=7)
_ENOUGH_WEEKS = 3


@dataclass(frozen=True, slots=True)
class Risk:
    """The course under limits in the days held back, or, if there are none, in all days.

    `margin_ratio` is the share of the fullest volume that stays free. Producer-hours are None where the
    history has no producers.
    """

    tried_days: float
    held_back_days: float
    peak_ratio: float
    peak_broker_id: int
    peak_volume: str
    margin_ratio: float
    delayed_bytes: float
    paused_producer_hours: float | None
    slowed_producer_hours: float | None
    confidence: str
    reason: str

    def sentence(self) -> str:
        """Return it in words."""
        days = (
            f"{self.held_back_days:.0f} days held back"
            if self.held_back_days
            else f"all {self.tried_days:.0f} days"
        )
        hours = [
            f"{hours:.1f} producer-hours {how}"
            for hours, how in ((self.paused_producer_hours, "paused"), (self.slowed_producer_hours, "slowed"))
            if hours is not None
        ]
        return (
            f"in {days} the fullest volume, {self.peak_volume} of broker {self.peak_broker_id}, came to "
            f"{self.peak_ratio:.1%} and kept {self.margin_ratio:.1%} free; {', '.join([*hours, ''])}"
            f"confidence {self.confidence}: {self.reason}"
        )


@dataclass(frozen=True, slots=True)
class Basis:
    """The origin of the reserves of a cluster's volumes."""

    needs: Sequence[Need]
    brokers: Producing
    sizing: Sizing

    @property
    def leaking(self) -> list[int]:
        """The brokers whose PAUSE lets requests through."""
        return sorted(self.brokers.without_fence if self.sizing.trusts_fence else self.brokers.connections)

    def sentence(self) -> str:
        """Return the terms of the volume that needs most, and what they count."""
        known = [need for need in self.needs if need.terms is not None]
        if not known:
            return "no volume needs a reserve"
        most = max(known, key=lambda need: need.reserve_percent)
        assert most.terms is not None
        count = sum(self.brokers.connections.values())
        given = self.sizing.connections is not None
        connections = (
            f"{count:.0f} connections" if given else f"{count:.0f} clients of the records as connections"
        )
        leaking = f"brokers without the fence: {', '.join(map(str, self.leaking)) or 'none'}"
        return (
            f"the volume of broker {most.broker_id} mounted at {most.mount_point} needs most, "
            f"{most.reserve_percent:.1f} %: {most.terms.sentence()}; {connections}; {leaking}"
        )

    def document(self) -> dict[str, object]:
        """Return it as JSON has it, in bytes."""
        return {
            "connections": {str(broker): count for broker, count in sorted(self.brokers.connections.items())},
            "connections_are": "clients" if self.sizing.connections is None else "given",
            "without_fence": self.leaking,
            "sentence": self.sentence(),
            "volumes": [
                {
                    "broker_id": need.broker_id,
                    "mount_point": need.mount_point,
                    "reserve_bytes": need.terms.bytes,
                    **asdict(need.terms),
                }
                for need in self.needs
                if need.terms is not None
            ],
        }


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The limits of a cluster, as a policy that has them for every broker of its last day, with their risk;
    or the problem, if there are none.
    """

    cluster_id: str
    policy: Policy | None
    problem: str | None
    risk: Risk | None
    tried: Sequence[str] = ()
    """The names of the candidates."""
    outcomes: Sequence[Row] = ()
    """Of closed_loop_summary over the whole history, where other policies are asked for: theirs, and those
    of the candidates.
    """
    basis: Basis | None = None

    def document(self) -> dict[str, object]:
        """Return it as JSON has it."""
        brokers = {} if self.policy is None else self.policy.brokers
        return {
            "policy": None if self.policy is None else self.policy.name,
            "problem": self.problem,
            "limits": {str(broker_id): limits.to_document() for broker_id, limits in brokers.items()},
            "risk": None if self.risk is None else {**asdict(self.risk), "sentence": self.risk.sentence()},
            "reserve": None if self.basis is None else self.basis.document(),
        }


@dataclass(frozen=True, slots=True)
class Span:
    """The time of a cluster's history, held back from `split` on. `brokers` are those of its last day."""

    first: datetime
    split: datetime
    last: datetime
    brokers: frozenset[int]


def span_of(first: datetime, last: datetime, brokers: frozenset[int]) -> Span:
    """Return what of a history is held back: two weeks of six and more, one of two and more, else nothing."""
    weeks = (last - first) / _WEEK
    held_back = 2 * _WEEK if weeks >= 6 else _WEEK if weeks >= 2 else timedelta(0)
    return Span(first, last - held_back, last, brokers)


def recommend_limits(
    history: History, tick_seconds: int, sizing: Sizing, policies: Sequence[Policy] = ()
) -> list[Recommendation]:
    """Return a recommendation for each cluster, with the outcomes of other policies over the whole history;
    all clusters and policies are simulated together.
    """
    spans = _spans(history.by_ten_minutes)
    brokers = producing(history.by_ten_minutes, history.clients, sizing)
    found = _needs(history.by_hour, history.by_ten_minutes, spans, brokers, sizing)
    wanted = {cluster_id: candidates(own) for cluster_id, own in found.items()}
    course = closed_loop(
        history.sampled(tick_seconds),
        history.decisions,
        history.clients,
        history.operators,
        {cluster_id: [*policies, *own] for cluster_id, own in wanted.items()},
        tick_seconds,
        sizing.replication_factor,
    )
    splits = {cluster_id: int(span.split.timestamp()) for cluster_id, span in spans.items()}
    marked = course.withColumn("is_held_back", F.col("tick") > _of_cluster(splits)).cache()
    tried, held_back = (
        _by_cluster(closed_loop_summary(marked.where(F.col("is_held_back") == so), tick_seconds))
        for so in (False, True)
    )
    whole = _by_cluster(closed_loop_summary(marked, tick_seconds)) if policies else {}
    marked.unpersist()
    return [
        replace(
            too_fast(name, found[name])
            or judge(name, span, wanted[name], tried.get(name, []), held_back.get(name, [])),
            tried=[policy.name for policy in wanted[name]],
            outcomes=whole.get(name, []),
            basis=Basis(found[name], brokers.get(name, Producing({})), sizing),
        )
        for name, span in sorted(spans.items())
    ]


def too_fast(cluster_id: str, volumes: Sequence[Need]) -> Recommendation | None:
    """Return that no limits can be recommended, if a volume is smaller than the reserve and zone it needs."""
    for need in needs_together(volumes):
        if need.reserve_percent + need.zone_percent > MOST_PERCENT:
            reserve, zone = f"{need.reserve_percent:.0f} %", f"{need.zone_percent:.0f} %"
            problem = (
                f"a volume of broker {need.broker_id} (mounted at {need.mount_point}) fills so fast that it "
                f"needs {reserve} of its capacity as reserve and {zone} as zone"
            )
            return Recommendation(cluster_id, None, problem, None)
    return None


def judge(
    cluster_id: str, span: Span, wanted: Sequence[Policy], tried: Sequence[Row], held_back: Sequence[Row]
) -> Recommendation:
    """Choose by the days before the split, and judge by those after it (rows of closed_loop_summary)."""
    try:
        chosen = choose(wanted, tried)
    except NoSafeLimits as error:
        return Recommendation(cluster_id, None, str(error), None)
    before = next(row for row in tried if row.policy == chosen.name)
    judged = next((row for row in held_back if row.policy == chosen.name), None)
    if judged is not None and judged.first_filled_tick is not None:
        problem = (
            f"under {chosen.name!r}, which was best before, volume {judged.fullest_volume} of broker "
            f"{judged.fullest_broker_id} filled in the days that were held back"
        )
        return Recommendation(cluster_id, None, problem, None)
    own = {broker: limits for broker, limits in chosen.brokers.items() if broker in span.brokers}
    risk = _risk(span, before if judged is None else judged, is_judged=judged is not None)
    return Recommendation(cluster_id, replace(chosen, brokers=own), None, risk)


def _risk(span: Span, row: Row, *, is_judged: bool) -> Risk:
    tried, held_back = span.split - span.first, span.last - span.split
    if not is_judged:
        confidence, reason = "low", "the history is too short to hold back a week"
    elif row.throttle_seconds + row.pause_seconds == 0:
        confidence, reason = "medium", "no volume came over these limits in the days held back"
    elif tried < _ENOUGH_WEEKS * _WEEK:
        confidence, reason = "medium", f"fewer than {_ENOUGH_WEEKS} weeks to find them by"
    else:
        confidence, reason = "high", "volumes came over these limits in the days held back, and none filled"
    day = timedelta(days=1)
    return Risk(
        tried_days=tried / day,
        held_back_days=held_back / day if is_judged else 0.0,
        peak_ratio=row.fullest_ratio,
        peak_broker_id=row.fullest_broker_id,
        peak_volume=row.fullest_volume,
        margin_ratio=1 - row.fullest_ratio,
        delayed_bytes=row.delayed_bytes,
        paused_producer_hours=row.paused_producer_hours,
        slowed_producer_hours=row.slowed_producer_hours,
        confidence=confidence,
        reason=reason,
    )


def _spans(ten_minutes: DataFrame) -> dict[str, Span]:
    """Return the span of each cluster, by figures of each of its brokers."""
    rows = ten_minutes.groupBy("cluster_id", "broker_id").agg(
        F.min(F.unix_micros("first_at")).alias("first"), F.max(F.unix_micros("at")).alias("last")
    )
    found: dict[str, list[Row]] = {}
    for row in rows.collect():
        found.setdefault(row.cluster_id, []).append(row)
    spans = {}
    for cluster_id, brokers in found.items():
        first, last = (
            datetime.fromtimestamp(micros / 1e6, UTC)
            for micros in (min(row.first for row in brokers), max(row.last for row in brokers))
        )
        day_before = (last - timedelta(days=1)).timestamp() * 1e6
        spans[cluster_id] = span_of(
            first, last, frozenset(row.broker_id for row in brokers if row.last >= day_before)
        )
    return spans


def _needs(
    hours: DataFrame,
    ten_minutes: DataFrame,
    spans: Mapping[str, Span],
    brokers: Mapping[str, Producing],
    sizing: Sizing,
) -> dict[str, list[Need]]:
    """Return the needs of the volumes of each cluster: growth and surges are those before its split.

    How fast a volume fills is no choice, so reserve and zone come from the whole history.
    """
    splits = {cluster_id: int(span.split.timestamp()) for cluster_id, span in spans.items()}
    is_tried = (F.col("hour") + 1) * 3600 <= _of_cluster(splits)
    rows: dict[str, list[Row]] = {cluster_id: [] for cluster_id in spans}
    for row in needs(hours, ten_minutes, is_tried).collect():
        rows[row.cluster_id].append(row)
    return {
        cluster_id: read_needs(own, brokers.get(cluster_id, Producing({})), sizing)
        for cluster_id, own in rows.items()
    }


def _of_cluster(figures: Mapping[str, int]) -> Column:
    """Return the figure of a row's cluster."""
    pairs = [F.lit(part) for pair in figures.items() for part in pair]
    return F.create_map(*pairs)[F.col("cluster_id")]


def _by_cluster(summary: DataFrame) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in summary.collect():
        found.setdefault(row.cluster_id, []).append(row)
    return found
