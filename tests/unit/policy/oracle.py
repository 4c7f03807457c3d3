"""The policy a second time, written from the statements A3 - A31 alone: slow, plain, and sharing nothing
with the code under test. It works on the messages as they were generated, not as the core parsed them.

A value is a usage message (dict), None (tombstone) or bytes (always malformed here).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil
from typing import Any

Message = Mapping[str, Any]
STALENESS_SECONDS, TOLERANCE_SECONDS = 60, 30


@dataclass(frozen=True)
class Case:
    """One situation, all of it."""

    records: Sequence[tuple[str, Message | bytes | None]]
    active: frozenset[int]
    joining: frozenset[int]
    self_id: int | None
    own: Message | None
    fallback: str
    now: datetime


@dataclass(frozen=True)
class Expected:
    """The required decision."""

    headroom: Fraction
    undetermined: frozenset[tuple[int, str]]
    held: bool

    @property
    def state(self) -> str:
        return "OPEN" if self.headroom == 1 else "PAUSE" if self.headroom == 0 else "THROTTLE"


def expected(case: Case) -> Expected:
    brokers = {int(key) for key, _ in case.records if key.isdigit()} | case.active | case.joining
    breaches: list[tuple[int, Fraction]] = []
    undetermined = set()
    for broker in brokers:
        if _order(case, f"quarantine/{broker}") and broker != case.self_id:
            continue
        votes, cause = _broker(case, broker)
        breaches += [(broker, vote) for vote in votes]
        if cause is not None:
            undetermined.add((broker, cause))
    if case.own is not None:
        assert case.self_id is not None
        breaches += [(case.self_id, vote) for vote in _votes(case.own)]
        if _failed(case.own) and all(broker != case.self_id for broker, _ in undetermined):
            undetermined.add((case.self_id, "failed"))
    if case.own is not None and all(broker != case.self_id for broker, _ in undetermined):
        others = [broker for broker in case.active if broker != case.self_id]
        ahead = sum(_reports_from_the_future(case, broker) for broker in others)
        if ahead >= 2 and ahead > len(others) / 2:
            undetermined.add((case.self_id, "clock"))
    headrooms = [vote for _, vote in breaches]
    hold = _order(case, "hold")
    if hold is not None:
        own_breach = any(broker == case.self_id and vote == 0 for broker, vote in breaches)
        held_at = 0 if own_breach or hold["Action"] == "pause" else 1
        return Expected(Fraction(held_at), frozenset(undetermined), True)
    if undetermined and case.fallback != "open":
        headrooms.append(Fraction(0))
    return Expected(min(headrooms, default=Fraction(1)), frozenset(undetermined), False)


def _broker(case: Case, broker: int) -> tuple[list[Fraction], str | None]:
    """A31: the votes of a broker's record, and why its state is not known where it must be."""
    must_be_known = broker in case.active and broker not in case.joining
    events = [value for key, value in case.records if key == str(broker)]
    tombstones = [index for index, event in enumerate(events) if event is None]
    if tombstones:  # nothing before a tombstone counts
        events = events[tombstones[-1] + 1 :]
    messages = [event for event in events if isinstance(event, Mapping)]
    usable = [message for message in messages if not _future(case, message)]
    if not usable:
        cause = "future" if messages else "malformed" if events else "tombstone" if tombstones else "missing"
        return [], cause if must_be_known else None
    record = usable[-1]
    is_listed = broker in case.active | case.joining
    is_away = not is_listed or (not must_be_known and _stale(case, record))
    # the join grace excuses who has not reported yet, and no report that is there
    votes, cause = _votes(record, is_away), None if is_away else _unknown(record)
    if is_listed and _stale(case, record) and _order(case, f"maintenance/{broker}") is None:
        if must_be_known:
            votes, cause = [vote for vote in votes if vote == 0], "stale"
        bounded = case.fallback == "bounded" and _hears(case)
        if bounded and _unknown(record) is None and _is_bounded(record):
            votes, cause = votes + _votes(_grown(case, record)), None
    for other in _others(usable):
        if not _stale(case, other):
            votes, cause = votes + _votes(other, not is_listed), cause or _unknown(other)
    return votes, cause if is_listed else None


def _hears(case: Case) -> bool:
    """Whether any broker's report is fresh: else it is the judge that is cut off."""
    return any(_is_fresh(case, key) for key, _ in case.records if key.isdigit())


def _is_fresh(case: Case, key: str) -> bool:
    events = [value for one, value in case.records if one == key]
    if None in events:
        events = events[len(events) - events[::-1].index(None) :]
    usable = [event for event in events if isinstance(event, Mapping) and not _future(case, event)]
    return bool(usable) and not _stale(case, usable[-1])


def _reports_from_the_future(case: Case, broker: int) -> bool:
    events = [value for key, value in case.records if key == str(broker)]
    if None in events:
        events = events[len(events) - events[::-1].index(None) :]
    messages = [event for event in events if isinstance(event, Mapping)]
    return bool(messages) and _future(case, messages[-1])


def _others(usable: list[Message]) -> list[Message]:
    """The last record of each instance but the last one's, unless a later record reports its end."""
    others = []
    for index, record in enumerate(usable[:-1]):
        instance, later = record.get("InstanceId"), usable[index + 1 :]
        if instance is None or any(one.get("InstanceId") == instance for one in later):
            continue
        claims = [one["Replaces"] for one in later if "Replaces" in one]
        if not any(c["Instance"] == instance and c["Sequence"] >= record["Sequence"] for c in claims):
            others.append(record)
    return others


def _stale(case: Case, record: Message) -> bool:
    return case.now - datetime.fromisoformat(record["SnapshotAt"]) > timedelta(seconds=STALENESS_SECONDS)


def _unknown(record: Message) -> str | None:
    if _failed(record):
        return "failed"
    return "invalid-limit" if _has_invalid_limit(record) else None


def _future(case: Case, record: Message) -> bool:
    ahead = datetime.fromisoformat(record["SnapshotAt"]) - case.now
    return ahead > timedelta(seconds=TOLERANCE_SECONDS)


def _order(case: Case, key: str) -> Message | None:
    """The order in force: the last one of its key that is well-formed, until its end."""
    given = [value for k, value in case.records if k == key and not isinstance(value, bytes)]
    if not given or given[-1] is None:
        return None
    order = given[-1]
    return order if case.now < datetime.fromisoformat(order["Until"]) else None


def _is_bounded(record: Message) -> bool:
    """Whether each volume that votes reports how fast it may fill."""
    voting = [v for v in record["Volumes"] if v.get("Role") != "metadata" and v.get("Status") != "offline"]
    return all("FillCeiling" in volume and _inodes_headroom(volume) in (None, 1) for volume in voting)


def _grown(case: Case, record: Message) -> Message:
    """The record with each volume as full as it may be by now."""
    seconds = Fraction((case.now - datetime.fromisoformat(record["SnapshotAt"])) / timedelta(microseconds=1))
    volumes = []
    for volume in record["Volumes"]:
        most = volume["Consumed"] + ceil(volume.get("FillCeiling", 0) * seconds / 10**6)
        volumes.append({**volume, "Consumed": min(most, volume["Capacity"])})
    return {**record, "Volumes": volumes}


def _failed(record: Message) -> bool:
    return any(v.get("Status") == "failed" and v.get("Role") != "metadata" for v in record["Volumes"])


def _votes(record: Message, is_away: bool = False) -> list[Fraction]:
    votes = []
    for volume in record["Volumes"]:
        if volume.get("Role") == "metadata":
            continue
        if volume.get("Status") == "offline" and not (is_away and volume.get("Latched")):
            continue
        both = volume_headroom(record, volume), _inodes_headroom(volume)
        headroom = min((one for one in both if one is not None), default=None)
        if volume.get("Latched"):
            headroom = Fraction(0)
        if headroom is None:
            continue
        had_figures = volume["Capacity"] > 0 or volume.get("Latched")
        if volume.get("Status") == "failed" and not (headroom == 0 and had_figures):
            continue  # of an unreadable volume, only a breach still counts
        votes.append(headroom)
    return votes


def volume_headroom(record: Message, volume: Message) -> Fraction | None:
    """A3 - A7, A24, A25, A29, each type by its own words; None where the limits can't be judged."""
    soft = volume.get("SoftLimit") or record["SoftLimit"]
    hard = volume.get("HardLimit") or record["HardLimit"]
    if not _valid(soft, hard):
        return None
    capacity, consumed = volume["Capacity"], volume["Consumed"]
    if _breached_hard(hard, capacity, consumed):
        return Fraction(0)
    if not _breached_soft(soft, capacity, consumed):
        return Fraction(1)
    free_at_soft, free_at_hard = (_free_bytes_at(limit, capacity) for limit in (soft, hard))
    if free_at_soft <= free_at_hard:  # no throttle zone
        return Fraction(1)
    left: Fraction = (capacity - consumed - free_at_hard) / (free_at_soft - free_at_hard)
    return left


def _inodes_headroom(volume: Message) -> Fraction | None:
    """F35, by the percentage of inodes that is free."""
    if "Inodes" not in volume:
        return None
    inodes = volume["Inodes"]
    percent = Fraction(100 * inodes["Free"], inodes["Total"])
    soft, hard = inodes["SoftFreePercentage"], inodes["HardFreePercentage"]
    return max(Fraction(0), min(Fraction(1), (percent - hard) / (soft - hard)))


def _breached_hard(limit: Message, capacity: int, consumed: int) -> bool:
    level = Fraction(str(limit["level"]))
    if limit["type"] == "ConsumedSpace":
        return consumed >= level
    if limit["type"] == "MinFreeBytes":
        return capacity - consumed <= level
    return 100 * (capacity - consumed) <= level * capacity


def _breached_soft(limit: Message, capacity: int, consumed: int) -> bool:
    level = Fraction(str(limit["level"]))
    if limit["type"] == "ConsumedSpace":
        return consumed > level
    if limit["type"] == "MinFreeBytes":
        return capacity - consumed < level
    return 100 * (capacity - consumed) < level * capacity


def _free_bytes_at(limit: Message, capacity: int) -> Fraction:
    level = Fraction(str(limit["level"]))
    if limit["type"] == "ConsumedSpace":
        return capacity - level
    return level if limit["type"] == "MinFreeBytes" else level * capacity / 100


def _valid(soft: Message, hard: Message) -> bool:
    for limit in (soft, hard):
        if limit["type"] not in ("ConsumedSpace", "MinFreeBytes", "MinFreePercentage"):
            return False
        top = 100 if limit["type"] == "MinFreePercentage" else 2**63 - 1
        if not 0 <= limit["level"] <= top:
            return False
    if soft["type"] != hard["type"]:
        return True
    if soft["type"] == "ConsumedSpace":
        return bool(soft["level"] < hard["level"])
    return bool(soft["level"] > hard["level"])


def _has_invalid_limit(record: Message) -> bool:
    if not _valid(record["SoftLimit"], record["HardLimit"]):
        return True
    return any(
        not _valid(v.get("SoftLimit") or record["SoftLimit"], v.get("HardLimit") or record["HardLimit"])
        for v in record["Volumes"]
    )
