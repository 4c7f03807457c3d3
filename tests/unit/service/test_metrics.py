"""Prometheus sees the present whole, and errors from zero."""

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from math import inf

import pytest
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kquota.disks.observation import Failure
from kquota.formats.signature_headers import SigningMode
from kquota.guard.folded import Folded
from kquota.guard.report import CycleReport
from kquota.kafka.errors import Kind
from kquota.policy.decision import (
    Covered,
    Decision,
    FallbackAction,
    Mode,
    State,
    Undetermined,
    UndeterminedCause,
)
from kquota.policy.events import Hold, HoldAction, OrderTerms
from kquota.policy.inodes import InodeLimits, Inodes
from kquota.policy.standing_orders import StandingOrder
from kquota.policy.topic_scope import TopicScope
from kquota.policy.volume import VolumeRole, VolumeStatus
from kquota.service.metrics import AgentMetrics
from kquota.service.state_collector import Figures
from tests.unit.guard.cycles import (
    NEWS,
    START,
    VERIFIED,
    Bench,
    TopicRecord,
    applied_state,
    arrival,
    settings_with,
    volume,
)
from tests.unit.retention.test_topic_sizes import contents

COUNTERS_WITHOUT_LABELS = (
    "read_errors",
    "history_dropped",
    "decision_write_errors",
    "clock_jumps",
    "config_reload_failures",
    "cycle_failures",
)
UNDETERMINED = (
    Undetermined(7, UndeterminedCause.STALE),
    Undetermined(8, UndeterminedCause.CLOCK, 75),
    Undetermined(None, UndeterminedCause.NOT_READ),
)
COVERED = (Covered(Undetermined(9, UndeterminedCause.STALE), START),)
FALLBACK = Decision(
    Fraction(0),
    (),
    UNDETERMINED,
    True,
    None,
    START,
    covered=COVERED,
    scope=TopicScope({"a": Fraction(0)}, Fraction(1, 2)),
)
HELD = Hold(HoldAction.PAUSE, OrderTerms(START, "a test", "alice"))
FAILED = volume(
    0,
    "/dev/sdb1",
    capacity_bytes=None,
    consumed_bytes=None,
    role=VolumeRole.METADATA,
    failures=(Failure(None, "it is gone"),),
)
LABELS = 'mount_point="/mnt/dev/sda1",role="data"'
INODES = Inodes(1000, 30, InodeLimits(Fraction(5), Fraction(2)))


@pytest.fixture
def bench() -> Bench:
    """An agent that has decided; its volume is between the limits, and its plug-in reports."""
    bench = Bench()
    bench.ports.plug_in = (
        applied_state(State.THROTTLE, factor=0.42, sequence=41, errors={"request": 3}, cluster_topics=4212),
        VERIFIED,
    )
    bench.ports.volumes = (volume(15), FAILED)
    bench.settle()
    return bench


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


def shown(metrics: AgentMetrics, bench: Bench, *arrivals: TopicRecord) -> dict[str, float]:
    """Return the content of a scrape after one more cycle."""
    metrics.show(bench.run(*arrivals, after=1))
    return series(metrics)


def everything(metrics: AgentMetrics, bench: Bench) -> None:
    filling = [bench.run(after=10) for _ in range(5)][-1]
    assert filling.own is not None
    (one, other) = filling.own.volumes
    counted = one._replace(fill_bytes_per_second=1, inodes=INODES)
    own = replace(filling.own, volumes=(counted, other))
    orders = (StandingOrder("hold", HELD.note, "pause"),)
    figures = Figures(
        identity=("3", "cluster"),
        signing=SigningMode.OFF,
        contents=contents(1),
        certificate_expiry_seconds=1_800_000_000,
        certificate_revoked=False,
        revoked_certificates=2,
        authority_expiry_seconds=1_900_000_000,
    )
    metrics.show(replace(filling, own=own, decision=FALLBACK, orders=orders), figures)
    metrics.cycle_completed(0.004, 1_700_000_000.5)


@pytest.mark.accepts("F35")
def test_a_volume_whose_inodes_are_judged_has_them_and_their_limits(
    metrics: AgentMetrics, bench: Bench
) -> None:
    everything(metrics, bench)
    seen = series(metrics)
    figures = {"inodes": 1000, "inodes_free": 30, "soft_limit_inodes_free": 50, "hard_limit_inodes_free": 20}
    for name, value in figures.items():
        assert seen[f'kquota_volume_{name}{{{LABELS},volume="/dev/sda1"}}'] == value
        assert sum(one.startswith(f"kquota_volume_{name}{{") for one in seen) == 1
    assert seen[f'kquota_volume_headroom_ratio{{{LABELS},volume="/dev/sda1"}}'] == pytest.approx(
        1 / 3, abs=1e-6
    )


@pytest.mark.accepts("A14")
def test_error_counters_exist_from_the_start_at_zero(metrics: AgentMetrics) -> None:
    seen = series(metrics)
    for kind in Kind:
        assert seen[f'kquota_publish_errors_total{{reason="{kind}"}}'] == 0
        assert seen[f'kquota_kafka_errors_total{{kind="{kind}"}}'] == 0
    for result in ("usage", "operator", "tombstone", "malformed", "future", "ignored"):
        assert seen[f'kquota_records_total{{result="{result}"}}'] == 0
    for name in COUNTERS_WITHOUT_LABELS:
        assert seen[f"kquota_{name}_total"] == 0
    assert seen['kquota_file_write_errors_total{file="state.json"}'] == 0
    assert seen['kquota_build_info{version="1.2.3"}'] == 1


@pytest.mark.accepts("A14")
def test_connection_and_publication_errors(metrics: AgentMetrics, bench: Bench) -> None:
    assert series(metrics)["kquota_connected"] == 0
    metrics.show(bench.run(), Figures(connected=True))
    metrics.publish_errors.labels(Kind.UNREACHABLE).inc()
    metrics.publish_errors.labels(Kind.ACL_DENIED).inc(2)
    seen = series(metrics)
    assert seen["kquota_connected"] == 1
    assert seen['kquota_publish_errors_total{reason="unreachable"}'] == 1
    assert seen['kquota_publish_errors_total{reason="acl-denied"}'] == 2


@pytest.mark.accepts("A19")
def test_throttling_for_lack_of_data_names_the_broker_until_it_is_known(
    metrics: AgentMetrics, bench: Bench
) -> None:
    metrics.show(replace(bench.run(), decision=FALLBACK))
    seen = series(metrics)
    assert seen["kquota_fallback"] == 1
    assert seen['kquota_undetermined{broker="7",cause="stale"}'] == 1
    assert seen['kquota_clock_behind_seconds{broker="8"}'] == 75
    assert not [name for name in seen if name.startswith("kquota_clock_behind_seconds") and "8" not in name]
    assert seen['kquota_undetermined{broker="",cause="not-read"}'] == 1
    seen = shown(metrics, bench)
    assert seen["kquota_fallback"] == 0
    assert not [name for name in seen if name.startswith("kquota_undetermined")]


def test_a_silent_broker_has_the_time_until_which_it_is_covered(metrics: AgentMetrics, bench: Bench) -> None:
    until = datetime(2026, 11, 20, tzinfo=UTC)
    covered = (
        Covered(Undetermined(7, UndeterminedCause.STALE), until),
        Covered(Undetermined(8, UndeterminedCause.CLOCK, 75), None),
    )
    metrics.show(replace(bench.run(), decision=replace(FALLBACK, undetermined=(), covered=covered)))
    seen = series(metrics)
    assert seen['kquota_covered_until_timestamp_seconds{broker="7"}'] == until.timestamp()
    assert seen['kquota_covered_until_timestamp_seconds{broker="8"}'] == inf
    assert seen['kquota_clock_behind_seconds{broker="8"}'] == 75


@pytest.mark.accepts("A19")
def test_a_fallback_and_its_broker_are_named(metrics: AgentMetrics) -> None:
    bench = Bench()
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    bench.settle()
    seen = shown(metrics, bench, arrival(2, b"{"))
    assert seen['kquota_undetermined{broker="2",cause="malformed"}'] == 1
    assert seen["kquota_fallback"] == 1
    assert seen['kquota_state{state="PAUSE"}'] == 1
    assert seen['kquota_records_total{result="malformed"}'] == 1
    assert seen["kquota_enforcing"] == 0
    assert seen["kquota_applied_known"] == 0


@pytest.mark.accepts("A18", "A19")
def test_a_fallback_that_holds_no_producer_is_not_shown_as_one(metrics: AgentMetrics) -> None:
    bench = Bench(settings=settings_with(fallback_action=FallbackAction.OPEN))
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    bench.settle()
    seen = shown(metrics, bench, arrival(2, b"{"))
    assert seen['kquota_undetermined{broker="2",cause="malformed"}'] == 1
    assert seen['kquota_state{state="OPEN"}'] == 1
    assert seen["kquota_fallback"] == 0


@pytest.mark.parametrize(
    ("state", "headroom"), [("OPEN", Fraction(1)), ("THROTTLE", Fraction(1, 4)), ("PAUSE", Fraction(0))]
)
def test_exactly_one_state_is_in_force(
    metrics: AgentMetrics, bench: Bench, state: str, headroom: Fraction
) -> None:
    decision = replace(FALLBACK, headroom=headroom, fallback=False, hold=HELD)
    report = bench.run()
    observing = replace(report.enforcement, mode=Mode.OBSERVE)
    metrics.show(replace(report, decision=decision, sequence=5, enforcement=observing))
    seen = series(metrics)
    states = {name: value for name, value in seen.items() if name.startswith("kquota_state")}
    assert states.pop(f'kquota_state{{state="{state}"}}') == 1
    assert list(states.values()) == [0, 0]
    assert seen["kquota_throttle_factor_ratio"] == headroom
    assert seen['kquota_hold_active{action="pause"}'] == 1
    assert seen['kquota_hold_active{action="open"}'] == 0
    assert seen["kquota_enforcing"] == 0
    assert seen["kquota_decision_sequence"] == 5


def test_before_the_first_decision_none_is_shown(metrics: AgentMetrics) -> None:
    seen = shown(metrics, Bench())
    decided = ("state", "throttle", "fallback", "hold", "decision_sequence", "enforcing")
    assert not [name for name in seen if name.startswith(tuple(f"kquota_{one}" for one in decided))]


def test_a_volume_that_is_gone_leaves_no_series(metrics: AgentMetrics, bench: Bench) -> None:
    bench.ports.volumes = (volume(8), FAILED)
    bench.run()
    bench.ports.volumes = (volume(11), FAILED)
    report = bench.run()
    assert report.own is not None
    filling = tuple(one._replace(fill_bytes_per_second=1) for one in report.own.volumes)
    metrics.show(
        replace(report, own=replace(report.own, volumes=filling)), Figures(growing=frozenset({"/dev/sda1"}))
    )
    seen = series(metrics)
    figures = {
        "capacity_bytes": 100,
        "consumed_bytes": 89,
        "headroom_ratio": 0,  # by the latch
        "soft_limit_bytes": 80,
        "hard_limit_bytes": 90,
        "fill_bytes_per_second": 1,
        "seconds_to_soft": 0,
        "seconds_to_hard": 1,
        "latched": 1,
        "growing_in_pause": 1,
    }
    for name, value in figures.items():
        assert seen[f'kquota_volume_{name}{{{LABELS},volume="/dev/sda1"}}'] == value
    assert seen[f'kquota_volume_status{{{LABELS},status="ok",volume="/dev/sda1"}}'] == 1
    failed = {name: value for name, value in seen.items() if "/dev/sdb1" in name}
    assert not [name for name in failed if "bytes" in name or "headroom" in name], "no figures are made up"
    labels = 'mount_point="/mnt/dev/sdb1",role="metadata"'
    for status in VolumeStatus:
        name = f'kquota_volume_status{{{labels},status="{status}",volume="/dev/sdb1"}}'
        assert failed[name] == (status is VolumeStatus.FAILED)
    for name in ("latched", "growing_in_pause"):
        assert failed[f'kquota_volume_{name}{{{labels},volume="/dev/sdb1"}}'] == 0
    bench.ports.volumes = (volume(11),)
    assert not [name for name in shown(metrics, bench) if "/dev/sdb1" in name]


def test_volumes_and_decision_are_those_of_the_cycle(metrics: AgentMetrics, bench: Bench) -> None:
    bench.ports.write_error = "No space left on device"
    bench.ports.volumes = (volume(14), FAILED)
    seen = shown(metrics, bench)
    assert seen[f'kquota_volume_headroom_ratio{{{LABELS},volume="/dev/sda1"}}'] == 0.4
    assert seen[f'kquota_volume_consumed_bytes{{{LABELS},volume="/dev/sda1"}}'] == 86
    assert seen["kquota_throttle_factor_ratio"] == 0.4
    assert seen["kquota_decision_write_errors_total"] == 1
    assert seen["kquota_enforcing"] == 1
    assert seen["kquota_rival_agent"] == 0


def test_what_the_plug_in_applies(metrics: AgentMetrics, bench: Bench) -> None:
    assert series(metrics)["kquota_applied_known"] == 0
    assert series(metrics)["kquota_applied_verified"] == 0
    seen = shown(metrics, bench)
    assert seen["kquota_applied_known"] == 1
    assert seen["kquota_applied_verified"] == 1
    assert seen['kquota_applied_state{state="THROTTLE"}'] == 1
    assert seen["kquota_applied_factor_ratio"] == 0.42
    assert seen["kquota_applied_sequence"] == 41
    assert seen['kquota_applied_mechanism{mechanism="governor"}'] == 1
    assert seen['kquota_applied_errors_total{kind="request"}'] == 3
    metrics.show(replace(bench.run(), applied=None))
    seen = series(metrics)
    assert not [name for name in seen if name.startswith(("kquota_applied_state", "kquota_applied_factor"))]


@pytest.mark.accepts("G22")
@pytest.mark.parametrize(("mode", "other"), [("observe", "enforce"), ("enforce", "observe")])
def test_the_mode_in_force_at_the_plug_in(metrics: AgentMetrics, bench: Bench, mode: str, other: str) -> None:
    bench.ports.plug_in = (applied_state(mode=Mode(mode)), VERIFIED)
    seen = shown(metrics, bench)
    assert seen[f'kquota_applied_mode{{mode="{mode}"}}'] == 1
    assert seen[f'kquota_applied_mode{{mode="{other}"}}'] == 0
    metrics.show(replace(bench.run(), applied=None))
    assert not [name for name in series(metrics) if name.startswith("kquota_applied_mode")], "not known"


@pytest.mark.accepts("F16")
def test_a_rival_is_an_alert(metrics: AgentMetrics, bench: Bench) -> None:
    rival = arrival(1, bench.usage(50, InstanceId="other"))
    assert shown(metrics, bench, rival)["kquota_rival_agent"] == 1
    assert shown(metrics, bench)["kquota_rival_agent"] == 1, "a scrape between its reports sees it, too"


def test_counters_count(metrics: AgentMetrics, bench: Bench) -> None:
    report: CycleReport = bench.run()
    metrics.show(replace(report, fold=Folded(Counter({"usage": 5, "malformed": 2}))))
    unwritten = replace(report, fold=Folded(Counter({"usage": 1})), write_error="No space left on device")
    metrics.show(unwritten, Figures(certificate_expiry_seconds=1_800_000_000))
    metrics.kafka_errors.labels(Kind.CERTIFICATE_EXPIRED).inc()
    for counter in (
        metrics.read_errors,
        metrics.history_dropped,
        metrics.clock_jumps,
        metrics.cycle_failures,
    ):
        counter.inc()
    metrics.configuration_taken(is_last_good=True)
    metrics.cycle_completed(0.03, 1_700_000_000.5)
    seen = series(metrics)
    assert seen['kquota_records_total{result="usage"}'] == 6
    assert seen['kquota_records_total{result="malformed"}'] == 2
    assert seen['kquota_kafka_errors_total{kind="certificate-expired"}'] == 1
    for name in COUNTERS_WITHOUT_LABELS:
        assert seen[f"kquota_{name}_total"] == 1
    assert seen["kquota_config_last_good"] == 1
    assert seen["kquota_client_certificate_expiry_timestamp_seconds"] == 1_800_000_000
    assert seen["kquota_cycle_seconds_count"] == 1
    assert seen["kquota_cycle_seconds_sum"] == 0.03
    assert seen["kquota_last_cycle_timestamp_seconds"] == 1_700_000_000.5


def test_names_are_complete_and_follow_the_conventions(metrics: AgentMetrics, bench: Bench) -> None:
    announced = metrics.names()
    everything(metrics, bench)
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


def test_the_global_registry_is_left_alone(metrics: AgentMetrics, bench: Bench) -> None:
    AgentMetrics("1.2.3")  # a second one does not collide
    everything(metrics, bench)
    assert b"kquota" not in generate_latest(REGISTRY)
