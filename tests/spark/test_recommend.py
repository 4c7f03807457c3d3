"""Recommended limits and quotas: the needs, the candidates, the choice, and the files."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from pyspark.sql import Row

from kquota_pipeline.backtest.policy import Limits, Policy
from kquota_pipeline.recommend.limits import Need, NoSafeLimits, candidates, choose, limits_of
from kquota_pipeline.recommend.write import quota_commands, write_limits

ROOT = Path(__file__).parents[2]


def test_a_brokers_limits_are_what_most_volumes_need_and_the_others_by_mount_point() -> None:
    steep = Need(1, "/data/3", 4.2, 1.0)
    usual = [Need(1, "/data/1", 1.0, 0.5), Need(1, "/data/2", 1.5, 0.5)]
    limits = limits_of([*usual, steep], 1.0, 6)
    assert [str(limits.hard), str(limits.soft)] == ["MinFreePercentage 2 %", "MinFreePercentage 5 %"]
    assert {mount: [str(limit) for limit in pair] for mount, pair in limits.volumes.items()} == {
        "/data/3": ["MinFreePercentage 4.5 %", "MinFreePercentage 10.5 %"]
    }
    # without a mount point a volume can't have its own: then the broker's are the widest
    nameless = limits_of([Need(1, "/data/1", 1.0, 0.5), Need(1, None, 4.2, 1.0)], 1.0, 6)
    assert (str(nameless.hard), nameless.volumes) == ("MinFreePercentage 4.5 %", {})


def test_candidates_that_let_a_disk_fill_are_not_recommended() -> None:
    wanted = candidates([Need(1, "/data/1", 1.0, 0.5)])

    def outcome(policy: Policy, delayed: float, filled: int | None) -> Row:
        return Row(
            policy=policy.name,
            delayed_bytes=delayed,
            first_filled_tick=filled,
            fullest_volume="/dev/sdb1",
            fullest_broker_id=1,
        )

    outcomes = [outcome(wanted[0], 1.0, 600), outcome(wanted[1], 9.0, None), outcome(wanted[2], 5.0, None)]
    assert choose(wanted, outcomes) is wanted[2]
    with pytest.raises(NoSafeLimits, match=r"volume /dev/sdb1 of broker 1 filled"):
        choose(wanted, [outcome(policy, 1.0, 600) for policy in wanted])


def test_a_quota_is_set_with_the_standard_tool_and_names_are_quoted() -> None:
    row = Row(cluster_id="c", user="CN=a b", client_id="", quota_bytes_per_second=5)
    assert quota_commands([row]) == [
        'kafka-configs.sh --bootstrap-server "$BOOTSTRAP" --alter --add-config producer_byte_rate=5 '
        "--entity-type users --entity-name 'CN=a b'"
    ]
    assert Limits().to_document()["hard"] == {"type": "MinFreePercentage", "level": 5}


def test_every_candidate_is_written_as_variables_that_the_role_takes(tmp_path: Path) -> None:
    schema = json.loads((ROOT / "schemas/limits.schema.json").read_text("utf-8"))
    specs = yaml.safe_load((ROOT / "roles/kquota_agent/meta/argument_specs.yml").read_text("utf-8"))
    options = specs["argument_specs"]["main"]["options"]
    volumes = [Need(1, "/data/1", 1.0, 0.5), Need(1, "/data/2", 30.0, 9.0), Need(2, None, 4.0, 0.1)]
    for policy in candidates(volumes):
        paths = write_limits(policy.brokers, tmp_path / policy.name)
        assert [path.name for path in paths] == ["broker-1.yml", "broker-2.yml"]
        for path in paths:
            ((name, limits),) = yaml.safe_load(path.read_text("utf-8")).items()
            assert name in options
            jsonschema.validate(limits, schema)
