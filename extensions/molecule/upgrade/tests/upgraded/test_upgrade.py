"""After an upgrade without a mode, this version runs and enforces as the previous one did."""

from __future__ import annotations

from typing import Any

from host_state import OPERATOR, VERSION, applied, decision, run, starts, wait_for


def test_both_packages_are_of_this_version(host: Any):
    shown = run(host, "dpkg-query --show --showformat '${Version}\\n' kquota kquota-callback").split()
    assert [version.partition("-")[0] for version in shown] == [VERSION, VERSION]


def test_the_broker_was_restarted_once_for_each_version(host: Any):
    """By the preparation, the rollout and the upgrade; not by the second upgrade, which changed nothing."""
    assert starts(host, "kafka.service") == 3
    seen = wait_for(
        lambda: applied(host), lambda found: (found["mode"], found["state"]) == ("enforce", "OPEN")
    )
    assert seen["plugin_version"] == VERSION
    assert seen["lost"] is None


def test_the_agent_of_this_version_took_over_and_held_no_producer(host: Any):
    journal = run(host, "journalctl --no-pager --quiet --unit=kquota-agent --output=cat").splitlines()
    begun = [number for number, line in enumerate(journal) if line.startswith(f"kquota {VERSION} started")]
    assert len(begun) == 1, journal
    states = [line for line in journal[begun[0] :] if line.startswith(("OPEN:", "THROTTLE to", "PAUSE:"))]
    assert states[0].startswith("OPEN:")
    assert decision(host)["mode"] == "enforce"


def test_the_configuration_of_the_previous_version_is_kept(host: Any):
    assert "mode: enforce" in run(host, "cat /etc/kquota/agent.yml").splitlines()
    properties = run(host, "cat /etc/kafka/server.properties").splitlines()
    assert properties.count("client.quota.callback.class=org.kquota.KquotaCallback") == 1
    assert properties.count("authorizer.class.name=org.kquota.KquotaAuthorizer") == 1
    assert run(host, "kquota check").startswith("KQUOTA OK")


def test_an_order_to_pause_is_carried_out_and_taken_back(host: Any):
    run(host, f"kquota hold pause --for 10m --reason 'a look' {OPERATOR}")
    seen = wait_for(lambda: applied(host), lambda found: found["state"] == "PAUSE")
    assert seen["mechanism"] == "fence"
    run(host, f"kquota hold release {OPERATOR}")
    wait_for(lambda: applied(host), lambda found: found["state"] == "OPEN")
