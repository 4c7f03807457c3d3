"""The output of `kquota explain` in each situation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest

from kquota.formats.records import read_event
from kquota.formats.sentences import what_ends_it
from kquota.formats.status import status_document
from kquota.formats.strict_json import ParsedJson
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import FallbackAction, UndeterminedCause
from kquota.policy.timestamps import format_utc
from kquota.policy.view import ClusterView
from tests.unit.policy.situations import NOW, fold, free, usage
from tests.unit.wording import say

GB = 1_000_000_000


def explained(
    consumed_gb: float,
    *,
    brokers: frozenset[int] = frozenset({1}),
    causes: tuple[UndeterminedCause, ...] = (),
    release_margin: str = "0.1",
    changes: Mapping[str, object] | None = None,
    **orders: Any,
) -> tuple[str, str]:
    """The two sentences about one volume of 100 GB on broker 1, soft at 80 GB and hard at 90 GB."""
    view = ClusterView(timedelta(seconds=30))
    record = {
        "SnapshotAt": format_utc(NOW),
        "SoftLimit": {"type": "MinFreeBytes", "level": 20 * GB},
        "HardLimit": {"type": "MinFreeBytes", "level": 10 * GB},
        "Volumes": [{"VolumeName": "/dev/sdb", "Capacity": 100 * GB, "Consumed": int(consumed_gb * GB)}],
        **(changes or {}),
    }
    for key, value in {"1": record, **orders}.items():
        view.fold(read_event(key, ParsedJson(value)), NOW)
    situation = Situation(brokers, cluster_causes=causes)
    decision = decide(view, situation, PolicySettings(FallbackAction.PAUSE), NOW)
    document: dict[str, Any] = status_document(
        view, situation, decision, NOW, release_margin=Fraction(release_margin)
    )
    return f"{document['sentence']}.", document["what_ends_it"]


def test_open_has_nothing_to_end() -> None:
    assert explained(50) == (
        f"OPEN: {say('calm')}.",
        say("nothing-to-end"),
    )


@pytest.mark.parametrize(
    ("consumed_gb", "to_free"),
    [(85, "5 GB"), (88, "8 GB"), (81, "1 GB"), (80.04, "40 MB"), (80.000000001, "1 bytes")],
)
def test_throttle_ends_at_the_soft_limit(consumed_gb: float, to_free: str) -> None:
    why, end = explained(consumed_gb)
    assert why.startswith("THROTTLE")
    assert end == (say("ends-at-soft-limit", volume="/dev/sdb", broker=1, size=to_free))


@pytest.mark.parametrize(("release_margin", "to_free"), [("0.1", "3 GB"), ("0.5", "7 GB"), ("0", "2 GB")])
def test_pause_ends_above_the_release_margin_as_configured(release_margin: str, to_free: str) -> None:
    why, end = explained(92, release_margin=release_margin)
    assert why.startswith("PAUSE")
    assert end == say("ends-above-margin", volume="/dev/sdb", broker=1, size=to_free)


def test_a_latched_volume_that_is_below_its_margin_already_has_nothing_to_free() -> None:
    latched = {"VolumeName": "/dev/sdb", "Capacity": 100 * GB, "Consumed": 50 * GB, "Latched": "HARD"}
    end = say("ends-above-margin", volume="/dev/sdb", broker=1, size="0 bytes")
    assert explained(50, changes={"Volumes": [latched]})[1] == end


def test_without_a_throttle_zone_pause_ends_a_hundredth_of_the_capacity_below_the_hard_limit() -> None:
    no_zone = {"SoftLimit": {"type": "MinFreePercentage", "level": 5}}
    why, end = explained(92, changes=no_zone)
    assert why.startswith("PAUSE")
    assert end == say("ends-above-margin", volume="/dev/sdb", broker=1, size="3 GB")
    assert explained(92, changes=no_zone, release_margin="0.5")[1] == end


def test_a_fallback_ends_when_the_broker_reports_or_is_decommissioned() -> None:
    why, end = explained(50, brokers=frozenset({1, 7}))
    assert say("unknown-missing", broker=7) in why
    assert end == say("ends-stale", broker=7)


@pytest.mark.parametrize("cause", [UndeterminedCause.TOPIC_REFUSED, UndeterminedCause.NOT_READ])
def test_a_fallback_for_the_whole_cluster_too(cause: UndeterminedCause) -> None:
    assert explained(50, causes=(cause,))[1] == say(f"ends-{cause}")


def test_a_hold_ends_at_its_time_or_by_release() -> None:
    until = format_utc(NOW + timedelta(minutes=5))
    hold = {"Action": "pause", "Until": until, "Reason": "disks are swapped", "Actor": "ada"}
    why, end = explained(50, hold=hold)
    assert say("held", action="pause", actor="ada", until=until, reason="disks are swapped") in why
    assert end == say("ends-hold")


def test_the_space_to_free_is_that_of_the_deciding_volume_of_the_deciding_broker() -> None:
    view = ClusterView(timedelta(seconds=30))
    for broker_id, consumed_gb in (
        (1, {"/dev/sda": 85, "/dev/sdb": 81}),
        (2, {"/dev/sda": 82, "/dev/sdb": 88}),
    ):
        record = {
            "SnapshotAt": format_utc(NOW),
            "SoftLimit": {"type": "MinFreeBytes", "level": 20 * GB},
            "HardLimit": {"type": "MinFreeBytes", "level": 10 * GB},
            "Volumes": [
                {"VolumeName": name, "Capacity": 100 * GB, "Consumed": used * GB}
                for name, used in consumed_gb.items()
            ],
        }
        view.fold(read_event(str(broker_id), ParsedJson(record)), NOW)
    situation = Situation(frozenset({1, 2}))
    decision = decide(view, situation, PolicySettings(FallbackAction.PAUSE), NOW)
    document: dict[str, Any] = status_document(view, situation, decision, NOW, release_margin=Fraction(1, 10))
    end = say("ends-at-soft-limit", volume="/dev/sdb", broker=2, size="8 GB")
    assert document["what_ends_it"] == end


def test_a_volume_whose_limits_are_not_known_has_no_figure_to_free() -> None:
    decision = decide(
        fold(("1", usage(free(5, Latched="HARD", HardLimit={"type": "Newer", "level": 1})))),
        Situation(frozenset({1})),
        PolicySettings(FallbackAction.OPEN),
        NOW,
    )
    brokers = [{"broker_id": 1, "volumes": [{"volume": "/dev/sda1", "soft_bytes": None}]}]
    end = say("ends-above-margin-of-unknown-size", volume="/dev/sda1", broker=1)
    assert what_ends_it(decision, brokers, Fraction(1, 10)) == end
