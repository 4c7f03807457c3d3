"""After the uninstallation, nothing of kquota is left, and the broker serves."""

from __future__ import annotations

from typing import Any

from host_state import kafka, leftovers, run


def test_nothing_is_left_on_the_host(host: Any):
    assert leftovers(host) == ""
    assert "not-found" in run(host, "systemctl show --property=LoadState kquota-agent")


def test_the_broker_serves_and_knows_nothing_of_it(host: Any):
    assert host.service("kafka").is_running
    assert "kquota" not in kafka(host, "kafka-topics", "--list")
