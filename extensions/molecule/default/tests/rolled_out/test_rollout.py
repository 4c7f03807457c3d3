"""The state of each of the three brokers after the rollout."""

from __future__ import annotations

import json
from typing import Any

import pytest
from host_state import (
    AUTHORIZER,
    CALLBACK,
    applied,
    decision,
    kafka,
    produce,
    producer,
    run,
    run_producer,
    wait_for,
)

OPERATOR = "--command-config /root/jane.properties"
DENIED = "Not authorized to access topics: [ledger]"


def test_the_agent_runs_and_starts_at_boot(host: Any):
    assert host.service("kquota-agent").is_running
    assert host.service("kquota-agent").is_enabled
    shown = run(host, "systemctl show --property=StatusText,NRestarts,Type kquota-agent")
    assert "Type=notify" in shown
    assert "NRestarts=0" in shown
    assert "StatusText=OPEN" in shown


def test_the_agent_starts_before_the_broker(host: Any):
    assert "kafka.service" in run(host, "systemctl show --property=Before --value kquota-agent").split()
    wanted = run(host, "systemctl show --property=Requires,Requisite,BindsTo,Wants --value kafka")
    assert "kquota" not in wanted


@pytest.mark.accepts("C1")
def test_the_broker_runs_and_names_the_plug_in(host: Any):
    assert host.service("kafka").is_running
    properties = run(host, "cat /etc/kafka/server.properties").splitlines()
    assert f"client.quota.callback.class={CALLBACK}" in properties


@pytest.mark.accepts("C1")
def test_the_fence_is_installed_around_the_broker_s_own_authorizer(host: Any):
    properties = run(host, "cat /etc/kafka/server.properties").splitlines()
    named = [line for line in properties if line.startswith("authorizer.class.name=")]
    own = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    assert named == [f"authorizer.class.name={own}", f"authorizer.class.name={AUTHORIZER}"]
    assert f"kquota.fence.authorizer.class={own}" in properties
    assert applied(host)["fence"]["installed"]


def test_the_decision_is_open_and_enforced(host: Any):
    seen = wait_for(
        lambda: decision(host), lambda found: found["state"] == "OPEN" and found["mode"] == "enforce"
    )
    assert seen["undetermined"] == []
    assert seen["fallback"] is False
    with host.sudo():
        file = host.file("/run/kquota/decision.json")
        assert (file.user, file.group) == ("kquota", "kquota")
        assert host.file("/run/kquota").mode == 0o755


@pytest.mark.accepts("C1")
def test_the_plug_in_applies_it(host: Any):
    seen = wait_for(lambda: applied(host), lambda found: found["mode"] == "enforce")
    assert seen["state"] == "OPEN"
    exempt = [entry["principal"] for entry in seen["exempt"]]
    assert f"User:CN=kquota-agent-{decision(host)['broker_id']},O=kquota" in exempt


def test_every_agent_sees_every_broker_with_its_volumes(host: Any):
    status = json.loads(run(host, "kquota status --json"))
    assert sorted(broker["broker_id"] for broker in status["brokers"]) == [1, 2, 3]
    assert all(broker["active"] for broker in status["brokers"])
    for broker in status["brokers"]:
        log_dirs = {path for volume in broker["volumes"] for path in volume["log_dirs"]}
        assert {"/data/1/kafka", "/data/2/kafka"} <= log_dirs


def test_the_monitoring_check_is_ok(host: Any):
    assert run(host, "kquota check").startswith("KQUOTA OK")


def test_the_journal_has_the_start_and_no_error(host: Any):
    journal = run(host, "journalctl --no-pager --unit=kquota-agent --output=cat")
    assert "OPEN" in journal
    assert "Traceback" not in journal
    fields = run(host, "journalctl --no-pager --unit=kquota-agent --output=verbose --lines=200")
    assert "KQUOTA_BROKER_ID=" in fields


@pytest.mark.accepts("A27")
def test_nothing_listens_but_kafka_and_the_metrics_for_this_host_alone(host: Any):
    listening = run(host, "ss --listening --tcp --numeric --processes --no-header").splitlines()
    kafka_ports = {line.split()[3].rpartition(":")[2] for line in listening if '"java"' in line}
    assert kafka_ports == {"9092", "9093", "9095"}, "no JMX"
    assert {line.split()[3] for line in listening if '"kquota"' in line} == {"127.0.0.1:9464"}


@pytest.mark.accepts("A13")
def test_the_agent_reaches_kafka_over_tls_on_the_listener_that_was_named(host: Any):
    connected = run(host, "ss --tcp --numeric --processes --no-header state established")
    agent = [line.split() for line in connected.splitlines() if "kquota" in line]
    assert agent != []
    assert {words[3].rpartition(":")[2] for words in agent} == {"9093"}


@pytest.mark.accepts("A14")
def test_metrics_say_that_it_is_connected(host: Any):
    reader = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9464/metrics').read().decode())"
    metrics = run(host, f'python3 -c "{reader}"')
    lines = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if line and not line.startswith("#"))
    assert float(lines["kquota_connected"]) == 1.0
    failures = [name for name in lines if name.startswith("kquota_publish_errors_total{")]
    assert failures != []


@pytest.fixture
def first(host: Any) -> Any:
    """Only the first broker, for checks of the whole cluster."""
    return host if host.check_output("hostname") == "broker-1" else None


@pytest.mark.accepts("A12")
def test_the_topics_are_as_they_have_to_be(first: Any):
    if first is None:
        return
    usage = kafka(
        first, "kafka-configs", "--describe --entity-type topics --entity-name __kquota_volume_usage"
    )
    assert "cleanup.policy=compact" in usage
    history = kafka(first, "kafka-configs", "--describe --entity-type topics --entity-name __kquota_history")
    assert "cleanup.policy=delete" in history
    allowed = kafka(first, "kafka-acls", "--list --topic __kquota_volume_usage")
    assert all(f"User:CN=kquota-agent-{broker},O=kquota" in allowed for broker in (1, 2, 3))
    assert "User:CN=application" not in allowed
    reports = kafka(
        first,
        "kafka-console-consumer",
        "--topic __kquota_volume_usage --from-beginning --max-messages 30 --property print.key=true",
    )
    assert {line.split("\t")[0] for line in reports.splitlines() if "\t{" in line} >= {"1", "2", "3"}


def test_producers_write_and_are_held_by_an_order(first: Any):
    if first is None:
        return
    kafka(first, "kafka-topics", "--create --if-not-exists --topic orders --partitions 3")
    kafka(first, "kafka-acls", "--add --allow-principal User:CN=application --producer --topic orders")
    assert "20000 records sent" in produce(first, "orders", 20000)
    # It may see the topic, and not write to it.
    kafka(first, "kafka-topics", "--create --if-not-exists --topic ledger --partitions 3")
    kafka(
        first, "kafka-acls", "--add --allow-principal User:CN=application --operation Describe --topic ledger"
    )
    assert DENIED in run_producer(first, "ledger", 3).stdout
    # With the operator's certificate of test_authority.
    run(first, f"kquota hold pause --for 10m --reason 'a look' {OPERATOR}")
    wait_for(lambda: applied(first), lambda found: found["state"] == "PAUSE")
    with first.sudo():
        assert first.run(f"timeout 15 {producer('orders', 20000)}").rc == 124
    seen = wait_for(lambda: applied(first), lambda found: found["fence"]["refusals"] > 0)
    assert seen["mechanism"] == "fence"
    assert DENIED in run_producer(first, "ledger", 3).stdout
    # A busy broker may log other errors of its own; refusals are filtered.
    assert "Unexpected error handling request RequestHeader(apiKey=PRODUCE" not in run(
        first, "journalctl --no-pager --unit=kafka --output=cat"
    )
    run(first, f"kquota hold release {OPERATOR}")
    wait_for(lambda: applied(first), lambda found: found["state"] == "OPEN")
    assert "20000 records sent" in produce(first, "orders", 20000)


def test_the_sandbox_leaves_little_to_attack(host: Any):
    # Two of the points are for system calls with which a process can give way to others, and nothing else.
    # Two are for the command line of the broker, which any user of the host may read.
    run(host, "systemd-analyze security --no-pager --threshold=19 kquota-agent.service")
