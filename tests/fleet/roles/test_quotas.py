"""Role variables of quotas, groups and thresholds: the resulting files, and the refused values."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import javaproperties
import pytest

from kquota.quotas.topic_thresholds import TopicThresholds, parse_thresholds
from tests.fleet.roles.plays import PlayFailed, run_play, run_tasks

PROPERTIES = (
    ("kquota_callback", "facts_properties"),
    ("kquota_callback", "preflight_quotas"),
    ("kquota_callback", "configure_properties"),
)
THRESHOLDS = (("kquota_callback", "configure_thresholds"),)
ORIGINAL = "node.id=7\nssl.key.password=hunter2\n"
QUOTAS: dict[str, Any] = {
    "kquota_callback_produce_default": "2M",
    "kquota_callback_produce_overrides": {"clientA": "4M", "client:B": 10_000_000},
    "kquota_callback_fetch_overrides": {"clientC": "3Mi"},
    "kquota_callback_quota_groups": [
        {
            "name": "ingest",
            "principals": [r"User:CN=loader\, first,O=x", "User:etl-*", r"~User:CN=app\d+"],
            "produce": "50M",
            "request": 200,
        },
        {"name": "orders", "client_ids": ["orders-app"], "produce_total": "80M", "topics": r"orders-.*"},
    ],
}


@pytest.fixture
def given(tmp_path: Path, plug_in: dict[str, object]) -> dict[str, Any]:
    (tmp_path / "server.properties").write_text(ORIGINAL)
    return {
        "kquota_callback_server_properties": str(tmp_path / "server.properties"),
        "kquota_callback_agent_principals": ["User:CN=agent"],
        "kquota_callback_broker_principals": ["User:CN=broker"],
        "kquota_callback_topics_file": str(tmp_path / "etc/topics.json"),
        **plug_in,
    }


@pytest.mark.accepts("B6", "C4", "C5")
def test_quotas_and_groups_become_broker_properties_that_the_plug_in_takes(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    assert run_tasks(tmp_path, PROPERTIES, given | QUOTAS) == 1
    text = (tmp_path / "server.properties").read_text("utf-8")
    found = {k: v for k, v in javaproperties.loads(text).items() if k.startswith("kquota.quota.")}
    assert found == {
        "kquota.quota.produce.default": "2M",
        "kquota.quota.produce.overrides": "client:B:10000000,clientA:4M",
        "kquota.quota.fetch.overrides": "clientC:3Mi",
        "kquota.quota.groups": "ingest,orders",
        "kquota.quota.group.ingest.principals": r"User:CN=loader\, first,O=x;User:etl-*;~User:CN=app\d+",
        "kquota.quota.group.ingest.produce": "50M",
        "kquota.quota.group.ingest.request": "200",
        "kquota.quota.group.orders.client.ids": "orders-app",
        "kquota.quota.group.orders.produce.total": "80M",
        "kquota.quota.group.orders.topics": "orders-.*",
    }
    assert run_tasks(tmp_path, PROPERTIES, given | QUOTAS) == 0
    assert run_tasks(tmp_path, PROPERTIES, given) == 1
    assert "kquota.quota." not in (tmp_path / "server.properties").read_text("utf-8")


def test_properties_that_the_plug_in_refuses_are_not_written(tmp_path: Path, given: dict[str, Any]) -> None:
    # Only the plug-in knows which names a pattern matches.
    conflict = {
        "kquota_callback_produce_overrides": {"orders-app": "1M"},
        "kquota_callback_quota_groups": [
            {"name": "orders", "client_ids": ["~orders-.*"], "produce": "5M"},
        ],
    }
    with pytest.raises(PlayFailed) as failed:
        run_tasks(tmp_path, PROPERTIES, given | conflict)
    assert "client id 'orders-app' is in group orders" in str(failed.value)
    assert "hunter2" not in str(failed.value)
    assert (tmp_path / "server.properties").read_text("utf-8") == ORIGINAL


GROUP = {"name": "a", "client_ids": ["x"], "produce": "1M"}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"produce_default": "2MB"}, r"kquota_callback_produce_default is '2MB', allowed are bytes per second"),
    ({"fetch_overrides": {"c": "fast"}}, r"kquota_callback_fetch_overrides\.c is 'fast'"),
    ({"produce_overrides": {"a,b": "2M"}}, r"client id 'a,b' .* comma"),
    ({"quota_groups": [GROUP, GROUP]}, r"the name 'a' is .*, allowed are .* each name once"),
    ({"quota_groups": [GROUP | {"name": "a b"}]}, r"the name 'a b' is invalid"),
    ({"quota_groups": [{"name": "a", "produce": "1M"}]}, r"group a: .* members"),
    ({"quota_groups": [{"name": "a", "client_ids": ["x"]}]}, r"group a: .* limit"),
    ({"quota_groups": [GROUP | {"client_ids": ["x;y"]}]}, r"group a: 'x;y' .* semicolon"),
    (
        {"quota_groups": [GROUP | {"produce_total": "9M", "topics": "t"}]},
        r"group a: .* each broker and .* cluster exclude",
    ),
    ({"quota_groups": [GROUP | {"fetch_total": "9M"}]}, r"group a: topics and .*fetch_total"),
    ({"topic_thresholds": {"topics": {"t": "1M"}}}, r"topic_thresholds\.total is 'missing'"),
    ({"topic_thresholds": {"total": "1M", "topics": {"a/b": "1"}}}, r"topic_thresholds\.topics: 'a/b'"),
    (
        {"topic_thresholds": {"total": 100, "topics": {"a": "81", "b": 20}}},
        r"topic_thresholds of host\d+: .* 101 .* total of 100 ",
    ),
]


@pytest.mark.accepts("D2")
def test_what_contradicts_itself_is_refused_with_its_place(tmp_path: Path, given: dict[str, Any]) -> None:
    """One host for each invalid value, in one play."""
    hosts = {
        f"host{number}": {f"kquota_callback_{name}": value for name, value in variables.items()}
        for number, (variables, _) in enumerate(WRONG)
    }
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(json.dumps({"all": {"hosts": hosts}}))
    tasks = [
        {"ansible.builtin.include_role": {"name": "kquota_callback", "tasks_from": part}}
        for part in ("preflight_quotas", "configure_thresholds")
    ]
    with pytest.raises(PlayFailed) as failed:
        run_play(tmp_path, tasks, given, inventory=str(inventory))
    said = " ".join(str(failed.value).replace("''", "'").split()).split("fatal: [")
    for number, (_, expected) in enumerate(WRONG):
        (of_host,) = [text for text in said if text.startswith(f"host{number}]")]
        assert re.search(expected, of_host)
    assert not (tmp_path / "etc").exists()


@pytest.mark.accepts("D1")
def test_thresholds_are_written_as_the_broker_reads_them_and_left_alone_where_none_are_given(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    file = tmp_path / "etc/topics.json"
    thresholds = {"total": "100M", "topics": {"orders": "40Mi", "events.v1": 20_000_000, "small": "1.5K"}}
    variables = given | {"kquota_callback_topic_thresholds": thresholds}
    assert run_tasks(tmp_path, THRESHOLDS, variables) == 2
    assert parse_thresholds(file.read_bytes()) == TopicThresholds(
        100_000_000, {"orders": 40 * 2**20, "events.v1": 20_000_000, "small": 1_500}
    )
    assert file.stat().st_mode & 0o777 == 0o644
    assert file.parent.stat().st_mode & 0o777 == 0o751
    assert run_tasks(tmp_path, THRESHOLDS, variables) == 0

    before = file.read_bytes()
    assert run_tasks(tmp_path, THRESHOLDS, given) == 0
    assert file.read_bytes() == before
