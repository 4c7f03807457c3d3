"""After the rollback, the broker is as before, the agent still reports, and no producer is held."""

from __future__ import annotations

import json
from typing import Any

import pytest
from host_state import OPERATOR, decision, kafka, produce, run, starts, wait_for


@pytest.mark.accepts("C1")
def test_the_broker_has_its_own_quota_callback(host: Any):
    assert host.service("kafka").is_running
    assert starts(host, "kafka.service") == 4
    assert "kquota" not in run(host, "cat /etc/kafka/server.properties")
    process = run(host, "systemctl show --property=MainPID --value kafka").strip()
    assert "KQUOTA" not in run(host, f"tr '\\0' '\\n' < /proc/{process}/environ")
    jars = run(host, f"find /proc/{process}/fd -ignore_readdir_race -lname '*.jar' -printf '%l\\n'")
    assert "kafka-clients" in jars
    assert "kquota" not in jars


def test_the_agent_stays_and_observes(host: Any):
    assert host.service("kquota-agent").is_running
    seen = wait_for(lambda: decision(host), lambda found: found["state"] == "OPEN")
    assert seen["mode"] == "observe"
    status = json.loads(run(host, "kquota status --json"))
    assert [broker["active"] for broker in status["brokers"]] == [True]


@pytest.mark.accepts("C1")
def test_an_order_to_pause_holds_nobody(host: Any):
    kafka(host, "kafka-topics", "--create --if-not-exists --topic orders --partitions 3")
    kafka(host, "kafka-acls", "--add --allow-principal User:CN=application --producer --topic orders")
    run(host, f"kquota hold pause --for 10m --reason 'a look' {OPERATOR}")
    wait_for(lambda: decision(host), lambda found: found["state"] == "PAUSE")
    assert "20000 records sent" in produce(host, "orders", 20000)
    run(host, f"kquota hold release {OPERATOR}")
