"""Policies are read from YAML, and their defects are reported."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest

from kquota.policy.decision import FallbackAction, Scope
from kquota.policy.limits import Limit, LimitType
from kquota_pipeline.backtest.policy import InvalidPolicy, Limits, parse_policies, read_policies

ROOT = Path(__file__).parents[3]
PERCENT = LimitType.MIN_FREE_PERCENTAGE


def test_the_examples_can_be_read() -> None:
    policies = read_policies(ROOT / "spark/kquota_pipeline/policies/examples.yml")
    assert len(policies) >= 4
    assert policies[0].limits is None
    assert (policies[0].scope, policies[1].scope) == (Scope.CLUSTER, Scope.VOLUME)


def test_a_policy_says_limits_by_broker_and_by_mount_point() -> None:
    (policy,) = parse_policies(
        {
            "policies": [
                {
                    "name": "one",
                    "limits": {
                        "hard": {"type": "MinFreePercentage", "level": "2.5"},
                        "volumes": {"/data/1": {"hard": {"type": "MinFreeBytes", "level": 10}}},
                    },
                    "brokers": {3: {"soft": {"type": "MinFreePercentage", "level": 40}}},
                    "release_margin_ratio": 0.25,
                    "fallback_action": "open",
                    "scope": "volume",
                    "staleness_seconds": 90,
                }
            ]
        },
        "here",
    )
    other, own, third = policy.pair(1, "/data/9"), policy.pair(1, "/data/1"), policy.pair(3, "/data/1")
    assert other is not None
    assert own is not None
    assert third is not None
    assert (other.hard, other.soft) == (Limit.of(PERCENT, Fraction(5, 2)), Limit.of(PERCENT, 15))
    assert own.hard == Limit.of(LimitType.MIN_FREE_BYTES, 10)
    assert (third.hard, third.soft) == (Limit.of(PERCENT, 5), Limit.of(PERCENT, 40))
    assert policy.release_margin == Fraction(1, 4)
    assert policy.fallback_action is FallbackAction.OPEN
    assert policy.scope is Scope.VOLUME
    assert policy.staleness_seconds == 90


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"name": "a", "limit": {}}, "'limit' is none of name, limits,"),
        ({"name": "a/b"}, "'a/b' is not a name"),
        (
            {"name": "a", "limits": {"hard": {"type": "Most", "level": 5}}},
            "limits.hard: type 'Most' is none of",
        ),
        ({"name": "a", "limits": {"hard": {"type": "MinFreePercentage", "level": 20}}}, "soft limit"),
        ({"name": "a", "limits": {"volumes": {"data": {}}}}, "'data' is not a mount point"),
        ({"name": "a", "release_margin_ratio": 2}, "release_margin_ratio: 2 is not a number between 0 and 1"),
        ({"name": "a", "fallback_action": "stop"}, "'stop' is none of pause, open, bounded"),
        ({"name": "a", "fallback_action": ["open"]}, "fallback_action: ['open'] is none of pause, open"),
        ({"name": "a", "scope": "topic"}, "scope: 'topic' is none of cluster, volume"),
        ({"name": "a", "scope": None}, "scope: None is none of cluster, volume"),
        ({"name": "a", "brokers": {"x": {}}}, "'x' is not a broker id"),
    ],
)
def test_what_is_wrong_is_said_with_file_key_and_value(entry: object, says: str) -> None:
    with pytest.raises(InvalidPolicy, match=re.escape(says)) as raised:
        parse_policies({"policies": [entry]}, "policies.yml")
    assert str(raised.value).startswith("policies.yml: policies[0]")


def test_two_policies_of_one_name_and_an_empty_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidPolicy, match="two policies are called 'a'"):
        parse_policies({"policies": [{"name": "a"}, {"name": "a"}]}, "f")
    empty = tmp_path / "empty.yml"
    empty.write_text("", "utf-8")
    with pytest.raises(InvalidPolicy, match="must be a mapping of policies"):
        read_policies(empty)
    with pytest.raises(InvalidPolicy, match="No such file"):
        read_policies(tmp_path / "none.yml")


def test_limits_are_written_in_the_schema_of_the_configuration() -> None:
    schema = json.loads((ROOT / "schemas/limits.schema.json").read_text("utf-8"))
    limits = Limits(volumes={"/data/1": (Limit.of(PERCENT, 3), None)})
    jsonschema.validate(limits.to_document(), schema)
    assert limits.to_document()["volumes"] == {"/data/1": {"hard": {"type": "MinFreePercentage", "level": 3}}}
