"""Random clusters for the property tests: small numbers and times at the edges, so that edges are hit."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from kquota.formats.records import read_event
from kquota.formats.usage_format import parse_usage
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import Decision, FallbackAction, Scope
from kquota.policy.timestamps import format_utc
from kquota.policy.usage import UsageRecord
from kquota.policy.view import ClusterView
from tests.unit.policy.oracle import Case, Message
from tests.unit.policy.situations import NOW, STALENESS, TOLERANCE, raw

CAPACITY = 1000
BROKERS = (1, 2, 3, 4)
AGES_SECONDS = (-3600.0, -30.001, -30.0, -1.0, 0.0, 1.0, 59.999, 60.0, 60.001, 86_400.0)
INSTANCES: tuple[Message, ...] = (
    {"InstanceId": "A", "Sequence": 1},
    {"InstanceId": "A", "Sequence": 2},
    {"InstanceId": "B", "Sequence": 1, "Replaces": {"Instance": "A", "Sequence": 1}},
    {"InstanceId": "C", "Sequence": 1},
)
MALFORMED = (b"", b"null", b"{}", b"[1]", b"garbage", b'{"SnapshotAt": "2026-11-20T10:15:30Z"}')

# A campaign searches further: KQUOTA_PROPERTY_SCALE=50 makes as many times the examples, new ones each time.
SCALE = float(os.environ.get("KQUOTA_PROPERTY_SCALE", "1"))


def bounded(examples: int) -> settings:
    """Return settings for this many examples, the same in every run unless scaled."""
    return settings(
        max_examples=round(examples * SCALE),
        derandomize=SCALE <= 1,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )


limits = st.builds(
    lambda kind, level: {"type": kind, "level": level if kind != "MinFreePercentage" else level / 10},
    st.sampled_from(["ConsumedSpace", "MinFreeBytes", "MinFreePercentage"]),
    st.integers(0, 1000),
)
invalid_limits = st.sampled_from(
    [
        {"type": "MaxUsed", "level": 1},
        {"type": "MinFreeBytes", "level": -1},
        {"type": "MinFreePercentage", "level": 100.1},
    ]
)
# Strategies are made once: Hypothesis looks each new one over, which costs more than to draw from it.
one_in_ten = st.integers(0, 9)
one_in_twenty = st.integers(0, 19)


@st.composite
def limit_pairs(draw: st.DrawFn) -> tuple[Message, Message]:
    """Soft and hard: mostly in the right order, sometimes of two types, sometimes invalid."""
    soft, hard = draw(limits), draw(limits)
    if soft["type"] == hard["type"] and draw(one_in_ten):
        low, high = sorted((soft["level"], hard["level"]))
        ordered = (low, high) if soft["type"] == "ConsumedSpace" else (high, low)
        soft, hard = {**soft, "level": ordered[0]}, {**hard, "level": ordered[1]}
    if not draw(one_in_twenty):
        hard = draw(invalid_limits)
    return soft, hard


pairs = limit_pairs()
any_limit = limits | invalid_limits
consumptions = st.integers(0, CAPACITY)
booleans = st.booleans()
ceilings = st.sampled_from([None, 0, 0, 1, 1, 2, 10])  # bytes per second: 60 to 600 bytes while a record ages
inodes_left = st.sampled_from([None] * 6 + [0, 20, 21, 35, 49, 50, 1000])  # of 1000: soft 50, hard 20
TOPICS = ("x", "y", "z")
complete_topics = st.lists(st.sampled_from(TOPICS), max_size=2, unique=True).map(lambda names: (names, True))
lists_of_topics = st.none() | complete_topics | complete_topics | st.just((["x"], False))
oddities = st.sampled_from([None] * 8 + ["limits", "hard", "latched", "offline", "failed", "metadata"])

oddities_of_metadata = st.sampled_from(
    [{}, {"Latched": "HARD"}, {"Status": "failed"}, {"Status": "offline", "Latched": "HARD"}]
)


@st.composite
def volumes(draw: st.DrawFn, name: str) -> Message:
    """One volume; most are sound, data, and without limits of their own."""
    fields: dict[str, Any] = {"VolumeName": name, "VolumeId": f"fs of {name}", "Capacity": CAPACITY}
    fields["Consumed"] = draw(consumptions)
    ceiling = draw(ceilings)
    if ceiling is not None:
        fields["FillCeiling"] = ceiling
    topics = draw(lists_of_topics)
    if topics is not None:
        fields["Topics"], fields["TopicsComplete"] = topics
    free = draw(inodes_left)
    if free is not None:
        fields["Inodes"] = {"Total": 1000, "Free": free, "SoftFreePercentage": 5, "HardFreePercentage": 2}
    odd = draw(oddities)
    if odd == "limits":
        fields["SoftLimit"], fields["HardLimit"] = draw(pairs)
    elif odd == "hard":
        fields["HardLimit"] = draw(any_limit)
    elif odd == "latched":
        fields["Latched"] = "HARD"
    elif odd == "metadata":
        fields |= {"Role": "metadata", **draw(oddities_of_metadata)}
    elif odd in ("offline", "failed"):
        fields["Status"] = odd
        if odd == "failed" and draw(booleans):
            fields["Capacity"] = fields["Consumed"] = 0
        if draw(booleans):
            fields["Latched"] = "HARD"
    return fields


volumes_by_name = {name: volumes(name) for name in "abc"}
names_of_volumes = st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True)
ages = st.sampled_from(AGES_SECONDS + (1.0,) * 12)
instances = st.sampled_from([{}, {}, *INSTANCES])


@st.composite
def messages(draw: st.DrawFn, age_seconds: float | None = None) -> Message:
    """A well-formed usage message."""
    if age_seconds is None:
        age_seconds = draw(ages)
    soft, hard = draw(pairs)
    names = draw(names_of_volumes)
    instance = draw(instances)
    return {
        **instance,
        "SnapshotAt": format_utc(NOW - timedelta(seconds=age_seconds)),
        "SoftLimit": soft,
        "HardLimit": hard,
        "Volumes": [draw(volumes_by_name[name]) for name in names],
    }


events = st.lists(messages() | messages() | messages() | st.sampled_from(MALFORMED) | st.none(), max_size=3)


@st.composite
def histories(draw: st.DrawFn) -> list[Message | bytes | None]:
    """The records of one broker's key, oldest first."""
    return draw(events)


all_histories = histories()
keys_of_orders = st.lists(
    st.sampled_from(["hold"] + [f"{k}/{b}" for k in ("quarantine", "maintenance") for b in BROKERS]),
    max_size=2,
)
seconds_left = st.sampled_from([-1.0, 0.0, 0.001, 60.0, 60.0])
actions = st.sampled_from(["pause", "open"])
fallbacks = st.sampled_from(["pause", "open", "bounded", "bounded"])


@st.composite
def orders(draw: st.DrawFn) -> list[tuple[str, Message | bytes | None]]:
    given: list[tuple[str, Message | bytes | None]] = []
    for key in draw(keys_of_orders):
        order: dict[str, Any] = {"Until": format_utc(NOW + timedelta(seconds=draw(seconds_left)))}
        order |= {"Reason": "a test", "Actor": "alice"}
        if key == "hold":
            order["Action"] = draw(actions)
        given.append((key, draw(st.sampled_from([order, order, order, None, b"garbage"]))))
    return given


all_orders = orders()
memberships = st.frozensets(st.sampled_from(BROKERS), min_size=1)
deciders = st.sampled_from((None, *BROKERS))
own_looks = st.none() | messages(0.0)
fresh_messages = messages(1.0)
# A pause for want of data hides the volumes.
mostly_open = st.sampled_from(["open", "open", "open", "pause"])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A cluster of up to four brokers, its records and orders, and who decides."""
    records: list[tuple[str, Message | bytes | None]] = []
    for broker in BROKERS:
        records += [(str(broker), event) for event in draw(all_histories)]
    records += draw(all_orders)
    active = draw(memberships)
    joining = draw(st.frozensets(st.sampled_from(sorted(active)), max_size=1))
    self_id = draw(deciders)
    own = draw(own_looks) if self_id is not None else None
    return Case(records, active, joining, self_id, own, draw(fallbacks), NOW)


@st.composite
def cases_of_one_broker(draw: st.DrawFn) -> Case:
    """A broker that has just reported up to three volumes, in a cluster without orders."""
    records = [("1", draw(fresh_messages))]
    return Case(records, frozenset({1}), frozenset(), 1, draw(own_looks), draw(mostly_open), NOW)


def decide_case(case: Case, scope: Scope = Scope.CLUSTER, topic: str | None = None) -> Decision:
    """Decide with the code under test, from the bytes that would be in the topic."""
    return decide_view(view_of(case), case, scope, topic)


def view_of(case: Case) -> ClusterView:
    view = ClusterView(TOLERANCE)
    view.fold_all((read_event(key, raw(value)) for key, value in case.records), case.now)
    return view


def decide_view(
    view: ClusterView, case: Case, scope: Scope = Scope.CLUSTER, topic: str | None = None
) -> Decision:
    own: UsageRecord | None = None if case.own is None else parse_usage(json.dumps(case.own))
    situation = Situation(case.active, case.joining, case.self_id, own)
    policy = PolicySettings(FallbackAction(case.fallback), STALENESS, scope)
    return decide(view, situation, policy, case.now, topic=topic)


def with_value(case: Case, index: int, value: Message) -> Case:
    """Return the case with one record's value exchanged."""
    records = list(case.records)
    records[index] = (records[index][0], value)
    return replace(case, records=records)


def usage_indices(case: Case) -> list[int]:
    """Return where in the records the well-formed usage messages are."""
    return [i for i, (key, value) in enumerate(case.records) if key.isdigit() and isinstance(value, Mapping)]
