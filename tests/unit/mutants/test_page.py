"""The page of mutants has the results of the last campaigns."""

from __future__ import annotations

from tools.mutants.__main__ import TARGETS, missed

NONE = {"killed": 0, "timed_out": 0, "survived": 0, "no_coverage": 0, "equivalent": 0}
PERFECT = {
    half: {"packages": {name: NONE | {"killed": 100} for name in targets}, "survivors": []}
    for half, targets in TARGETS.items()
}


def with_policy(**counts):
    of_policy = {"packages": PERFECT["python"]["packages"] | {"policy": NONE | counts}, "survivors": []}
    return PERFECT | {"python": of_policy}


def test_a_score_at_its_target_is_enough():
    assert list(missed(with_policy(killed=94, timed_out=1, survived=5, equivalent=7))) == []


def test_a_score_below_its_target_is_named():
    assert list(missed(with_policy(killed=94, survived=4, no_coverage=2))) == [
        "policy: 94.0 % of the mutants are killed, below 95 %"
    ]


def test_what_was_not_measured_is_missed():
    assert set(missed({"java": PERFECT["java"]})) == {f"{name}: not measured" for name in TARGETS["python"]}
