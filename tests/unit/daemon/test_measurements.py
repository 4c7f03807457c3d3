"""A cycle's metrics."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client import generate_latest

from kquota.core.decision import FallbackAction, State
from kquota.core.policy import PolicySettings
from kquota.core.usage import VolumeRole
from kquota.daemon.measurements import measure
from kquota.daemon.metrics import AgentMetrics
from tests.unit.daemon.cycles import NEWS, SETTINGS, VERIFIED, Bench, applied_state, arrival, volume


def metrics_of(bench: Bench, *arrivals: object) -> str:
    metrics = AgentMetrics("1")
    measure(bench.run(*arrivals, after=1), metrics)  # type: ignore[arg-type]
    return generate_latest(metrics.registry).decode()


@pytest.mark.accepts("A19")
def test_a_fallback_and_its_broker_are_named() -> None:
    bench = Bench()
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    bench.settle()
    text = metrics_of(bench, arrival(2, b"{"))
    assert 'kquota_undetermined{broker="2",cause="malformed"} 1.0' in text
    assert "kquota_fallback 1.0" in text
    assert 'kquota_state{state="PAUSE"} 1.0' in text
    assert 'kquota_records_total{result="malformed"} 1.0' in text
    assert "kquota_enforcing 0.0" in text
    assert "kquota_applied_known 0.0" in text


@pytest.mark.accepts("A18", "A19")
def test_a_fallback_that_holds_nobody_is_not_shown_as_one() -> None:
    bench = Bench(settings=replace(SETTINGS, policy=PolicySettings(FallbackAction.OPEN)))
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    bench.settle()
    text = metrics_of(bench, arrival(2, b"{"))
    assert 'kquota_undetermined{broker="2",cause="malformed"} 1.0' in text
    assert 'kquota_state{state="OPEN"} 1.0' in text
    assert "kquota_fallback 0.0" in text


def test_volumes_decision_and_what_is_applied_are_shown() -> None:
    bench = Bench()
    bench.ports.plug_in = (applied_state(State.THROTTLE, errors={"decision-refused": 2}), VERIFIED)
    failed = volume(0, "/dev/sdb1", capacity_bytes=None, consumed_bytes=None, role=VolumeRole.METADATA)
    bench.ports.volumes = (volume(15), failed)
    bench.settle()
    bench.ports.write_error = "No space left on device"
    bench.ports.volumes = (volume(14), failed)
    text = metrics_of(bench)
    labels = 'mount_point="/mnt/dev/sda1",role="data",volume="/dev/sda1"'
    assert f"kquota_volume_headroom_ratio{{{labels}}} 0.4" in text
    assert f"kquota_volume_consumed_bytes{{{labels}}} 86.0" in text
    assert 'kquota_volume_consumed_bytes{mount_point="/mnt/dev/sdb1"' not in text, "unknown is not zero"
    assert "kquota_throttle_factor_ratio 0.4" in text
    assert "kquota_decision_write_errors_total 1.0" in text
    assert "kquota_enforcing 1.0" in text
    assert "kquota_applied_verified 1.0" in text
    assert 'kquota_applied_errors_total{kind="decision-refused"} 2.0' in text
    assert "kquota_rival_agent 0.0" in text


@pytest.mark.accepts("F16")
def test_a_rival_is_an_alert() -> None:
    bench = Bench()
    bench.settle()
    assert "kquota_rival_agent 1.0" in metrics_of(bench, arrival(1, bench.usage(50, InstanceId="other")))
    assert "kquota_rival_agent 1.0" in metrics_of(bench), "a scrape between its reports sees it, too"
