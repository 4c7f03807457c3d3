"""Prometheus sees the present whole, and errors from zero."""

import re
import socket
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import pytest
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kquota.daemon.metrics import AgentMetrics, AppliedSample, DecisionSample, VolumeSample
from kquota.daemon.metrics_server import MetricsServer
from kquota.kafka.errors import Kind
from kquota.settings.values import ListenAddress

VOLUME = VolumeSample(
    "/dev/sda1",
    "/data/1",
    "data",
    "ok",
    capacity_bytes=1000,
    consumed_bytes=400,
    soft_limit_bytes=300,
    hard_limit_bytes=500,
    fill_bytes_per_second=4,
    seconds_to_soft=0,
    seconds_to_hard=25,
    headroom_ratio=0.5,
    latched=True,
)
FALLBACK = DecisionSample(
    state="PAUSE",
    factor=0.0,
    held_by_fallback=True,
    undetermined=[(7, "stale"), (8, "clock"), (None, "not-read")],
    clock_behind_seconds={8: 75},
    hold=None,
    sequence=42,
    enforcing=True,
)
APPLIED = AppliedSample("THROTTLE", 0.42, 41, True, "governor", "enforce", {"request": 3})


@pytest.fixture
def metrics() -> AgentMetrics:
    return AgentMetrics("1.2.3")


def series(metrics: AgentMetrics) -> dict[str, float]:
    """Return the content of a scrape: series as text, e.g. ``name{a="b"}``, with its value."""
    found = {}
    for family in text_string_to_metric_families(generate_latest(metrics.registry).decode()):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def everything(metrics: AgentMetrics) -> None:
    metrics.identified(3, "cluster")
    metrics.observed([VOLUME])
    metrics.decided(FALLBACK)
    metrics.applied(APPLIED)
    metrics.cycle_completed(0.004, 1_700_000_000.5)
    metrics.certificate_expires(1_800_000_000)


@pytest.mark.accepts("A14")
def test_error_counters_exist_from_the_start_at_zero(metrics: AgentMetrics) -> None:
    seen = series(metrics)
    for kind in Kind:
        assert seen[f'kquota_publish_errors_total{{reason="{kind}"}}'] == 0
        assert seen[f'kquota_kafka_errors_total{{kind="{kind}"}}'] == 0
    for result in ("usage", "operator", "tombstone", "malformed", "future", "ignored"):
        assert seen[f'kquota_records_total{{result="{result}"}}'] == 0
    for name in (
        "read_errors",
        "history_dropped",
        "decision_write_errors",
        "clock_jumps",
        "config_reload_failures",
        "cycle_failures",
    ):
        assert seen[f"kquota_{name}_total"] == 0
    assert seen['kquota_build_info{version="1.2.3"}'] == 1


@pytest.mark.accepts("A14")
def test_connection_and_publication_errors(metrics: AgentMetrics) -> None:
    assert series(metrics)["kquota_connected"] == 0
    metrics.connected(True)
    metrics.publish_failed(Kind.UNREACHABLE)
    metrics.publish_failed(Kind.ACL_DENIED)
    metrics.publish_failed(Kind.ACL_DENIED)
    seen = series(metrics)
    assert seen["kquota_connected"] == 1
    assert seen['kquota_publish_errors_total{reason="unreachable"}'] == 1
    assert seen['kquota_publish_errors_total{reason="acl-denied"}'] == 2


@pytest.mark.accepts("A19")
def test_throttling_for_lack_of_data_names_the_broker_until_it_is_known(metrics: AgentMetrics) -> None:
    metrics.decided(FALLBACK)
    seen = series(metrics)
    assert seen["kquota_fallback"] == 1
    assert seen['kquota_undetermined{broker="7",cause="stale"}'] == 1
    assert seen['kquota_clock_behind_seconds{broker="8"}'] == 75
    assert seen['kquota_undetermined{broker="",cause="not-read"}'] == 1
    metrics.decided(DecisionSample("OPEN", 1.0, False, [], None, 43, True))
    seen = series(metrics)
    assert seen["kquota_fallback"] == 0
    assert not [name for name in seen if name.startswith("kquota_undetermined")]


def test_exactly_one_state_is_in_force(metrics: AgentMetrics) -> None:
    for state, factor in (("OPEN", 1.0), ("THROTTLE", 0.25), ("PAUSE", 0.0)):
        metrics.decided(DecisionSample(state, factor, False, [], "pause", 5, False))
        seen = series(metrics)
        states = {name: value for name, value in seen.items() if name.startswith("kquota_state")}
        assert states.pop(f'kquota_state{{state="{state}"}}') == 1
        assert list(states.values()) == [0, 0]
        assert seen["kquota_throttle_factor_ratio"] == factor
    assert seen['kquota_hold_active{action="pause"}'] == 1
    assert seen['kquota_hold_active{action="open"}'] == 0
    assert seen["kquota_enforcing"] == 0
    assert seen["kquota_decision_sequence"] == 5


def test_a_volume_that_is_gone_leaves_no_series(metrics: AgentMetrics) -> None:
    labels = 'mount_point="/data/1",role="data"'
    metrics.observed([VOLUME, VolumeSample("/dev/sdb1", "/data/2", "data", "failed")])
    seen = series(metrics)
    assert seen[f'kquota_volume_capacity_bytes{{{labels},volume="/dev/sda1"}}'] == 1000
    assert seen[f'kquota_volume_consumed_bytes{{{labels},volume="/dev/sda1"}}'] == 400
    assert seen[f'kquota_volume_headroom_ratio{{{labels},volume="/dev/sda1"}}'] == 0.5
    assert seen[f'kquota_volume_soft_limit_bytes{{{labels},volume="/dev/sda1"}}'] == 300
    assert seen[f'kquota_volume_seconds_to_hard{{{labels},volume="/dev/sda1"}}'] == 25
    assert seen[f'kquota_volume_latched{{{labels},volume="/dev/sda1"}}'] == 1
    assert seen[f'kquota_volume_status{{{labels},status="ok",volume="/dev/sda1"}}'] == 1
    failed = {name: value for name, value in seen.items() if "/dev/sdb1" in name}
    assert not [name for name in failed if "bytes" in name or "headroom" in name], "no figures are made up"
    assert (
        failed['kquota_volume_status{mount_point="/data/2",role="data",status="failed",volume="/dev/sdb1"}']
        == 1
    )
    metrics.observed([VOLUME])
    assert not [name for name in series(metrics) if "/dev/sdb1" in name]


def test_what_the_plug_in_applies(metrics: AgentMetrics) -> None:
    assert series(metrics)["kquota_applied_known"] == 0
    assert series(metrics)["kquota_applied_verified"] == 0
    metrics.applied(APPLIED)
    seen = series(metrics)
    assert seen["kquota_applied_known"] == 1
    assert seen["kquota_applied_verified"] == 1
    assert seen['kquota_applied_state{state="THROTTLE"}'] == 1
    assert seen["kquota_applied_factor_ratio"] == 0.42
    assert seen["kquota_applied_sequence"] == 41
    assert seen['kquota_applied_mechanism{mechanism="governor"}'] == 1
    assert seen['kquota_applied_errors_total{kind="request"}'] == 3
    metrics.applied(None)
    seen = series(metrics)
    assert not [name for name in seen if name.startswith(("kquota_applied_state", "kquota_applied_factor"))]


@pytest.mark.accepts("G22")
@pytest.mark.parametrize(("mode", "other"), [("observe", "enforce"), ("enforce", "observe")])
def test_the_mode_in_force_at_the_plug_in(metrics: AgentMetrics, mode: str, other: str) -> None:
    metrics.applied(replace(APPLIED, mode=mode))
    seen = series(metrics)
    assert seen[f'kquota_applied_mode{{mode="{mode}"}}'] == 1
    assert seen[f'kquota_applied_mode{{mode="{other}"}}'] == 0
    metrics.applied(None)
    assert not [name for name in series(metrics) if name.startswith("kquota_applied_mode")], "not known"


def test_counters_count(metrics: AgentMetrics) -> None:
    metrics.records_read({"usage": 5, "malformed": 2})
    metrics.records_read({"usage": 1})
    metrics.kafka_failed(Kind.CERTIFICATE_EXPIRED)
    metrics.read_failed()
    metrics.history_dropped(1)
    metrics.decision_write_failed()
    metrics.clock_jumped()
    metrics.config_reload_failed()
    metrics.cycle_failed()
    metrics.running_last_good_config(True)
    metrics.certificate_expires(1_800_000_000)
    metrics.rival_seen(True)
    metrics.cycle_completed(0.03, 1_700_000_000.5)
    seen = series(metrics)
    assert seen['kquota_records_total{result="usage"}'] == 6
    assert seen['kquota_records_total{result="malformed"}'] == 2
    assert seen['kquota_kafka_errors_total{kind="certificate-expired"}'] == 1
    for name in (
        "read_errors",
        "history_dropped",
        "decision_write_errors",
        "clock_jumps",
        "config_reload_failures",
        "cycle_failures",
    ):
        assert seen[f"kquota_{name}_total"] == 1
    assert seen["kquota_config_last_good"] == 1
    assert seen["kquota_client_certificate_expiry_timestamp_seconds"] == 1_800_000_000
    assert seen["kquota_rival_agent"] == 1
    assert seen["kquota_cycle_seconds_count"] == 1
    assert seen["kquota_cycle_seconds_sum"] == 0.03
    assert seen["kquota_last_cycle_timestamp_seconds"] == 1_700_000_000.5


def test_names_are_complete_and_follow_the_conventions(metrics: AgentMetrics) -> None:
    announced = metrics.names()
    everything(metrics)
    metrics.observed([VOLUME])
    assert {name.split("{")[0] for name in series(metrics)} == announced == metrics.names()
    kinds = {}
    for line in generate_latest(metrics.registry).decode().splitlines():
        if line.startswith("# TYPE"):
            _, _, name, kind = line.split()
            kinds[name] = kind
    for name in announced:
        assert re.fullmatch(r"kquota_[a-z0-9_]+", name)
        assert name.endswith("_total") == (kinds.get(name) == "counter"), name
        assert not name.endswith("_created")


def test_the_global_registry_is_left_alone(metrics: AgentMetrics) -> None:
    AgentMetrics("1.2.3")  # a second one does not collide
    everything(metrics)
    assert b"kquota" not in generate_latest(REGISTRY)


@pytest.fixture
def server(metrics: AgentMetrics) -> Iterator[MetricsServer]:
    server = MetricsServer(ListenAddress("127.0.0.1", 0), metrics.registry)
    yield server
    server.close()


def test_the_endpoint_serves_the_present(metrics: AgentMetrics, server: MetricsServer) -> None:
    everything(metrics)
    assert server.address.port > 0
    with urllib.request.urlopen(f"http://{server.address}/metrics", timeout=60) as answer:
        assert 'kquota_state{state="PAUSE"} 1.0' in answer.read().decode()


def test_a_port_in_use_is_an_error_that_names_the_key(metrics: AgentMetrics, server: MetricsServer) -> None:
    with pytest.raises(OSError, match=f"metrics.listen is {server.address}"):
        MetricsServer(server.address, metrics.registry)


def test_closing_frees_the_port_and_the_thread_beside_a_scrape_that_hangs(metrics: AgentMetrics) -> None:
    threads = threading.active_count()
    server = MetricsServer(ListenAddress("127.0.0.1", 0), metrics.registry)
    with socket.create_connection((server.address.host, server.address.port)) as hanging:
        hanging.sendall(b"GET /met")
        server.close()
    again = MetricsServer(server.address, metrics.registry)
    again.close()
    assert threading.active_count() <= threads + 1, "at most the hanging scrape's own thread"
