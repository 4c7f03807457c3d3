"""Prometheus sees each order with its author, reason and end, and the reports that do not count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kquota.formats.signature_headers import SigningMode
from kquota.policy.known_brokers import ListedBrokers
from kquota.service.metrics import AgentMetrics
from kquota.service.state_collector import Figures
from tests.unit.guard.cycles import CLUSTER, NEWS, START, VERIFIED, Bench, applied_state, arrival, order
from tests.unit.service.test_metrics import series, shown


@pytest.fixture
def metrics() -> AgentMetrics:
    return AgentMetrics("1.2.3")


@pytest.fixture
def bench() -> Bench:
    """An agent that has decided, and whose plug-in reports."""
    bench = Bench()
    bench.ports.plug_in = applied_state(), VERIFIED
    bench.settle()
    return bench


@pytest.mark.accepts("G11")
def test_each_order_in_force_is_a_series_with_its_author_reason_and_end(
    metrics: AgentMetrics, bench: Bench
) -> None:
    orders = [
        arrival("hold", order(1000, Action="pause", Actor="al\nice")),
        arrival("quarantine/3", order(2000, Reason="r" * 130)),
        arrival("maintenance/4", order(0)),
    ]
    seen = shown(metrics, bench, *orders)
    assert seen["kquota_orders"] == 2
    until = {name: value for name, value in seen.items() if name.startswith("kquota_order_until")}
    ends = [until[name] - START.timestamp() for name in sorted(until)]
    assert ends == [2000, 1000]
    of_broker, hold = sorted(until)
    assert f'actor="alice",broker="3",order="quarantine",reason="{"r" * 119}…"' in of_broker
    assert 'action="pause",actor="' in hold
    assert 'broker="",order="hold",reason="a test"' in hold
    seen = shown(metrics, bench, arrival("hold", None), arrival("quarantine/3", None))
    assert seen["kquota_orders"] == 0
    assert not [name for name in seen if name.startswith("kquota_order_until")]


@pytest.mark.accepts("G11")
def test_of_many_orders_as_many_are_series_as_prometheus_bears(metrics: AgentMetrics, bench: Bench) -> None:
    orders = [arrival(f"maintenance/{number}", order(1000)) for number in range(100)]
    seen = shown(metrics, bench, *orders)
    assert seen["kquota_orders"] == 100
    assert len([name for name in seen if name.startswith("kquota_order_until")]) == 64


@pytest.mark.accepts("G11")
def test_volumes_that_a_hold_lets_producers_fill_are_counted(metrics: AgentMetrics, bench: Bench) -> None:
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    full = arrival(2, bench.usage(5))
    seen = shown(metrics, bench, full)
    assert (seen['kquota_state{state="PAUSE"}'], seen["kquota_held_open_over_hard_limit"]) == (1, 0)
    seen = shown(metrics, bench, arrival("hold", order(1000, Action="open")))
    assert (seen['kquota_state{state="OPEN"}'], seen["kquota_held_open_over_hard_limit"]) == (1, 1)
    seen = shown(metrics, bench, arrival(2, bench.usage(50)))
    assert seen["kquota_held_open_over_hard_limit"] == 0


@pytest.mark.accepts("G25")
def test_reports_that_do_not_count_are_counted(metrics: AgentMetrics) -> None:
    bench = Bench(listed=ListedBrokers(CLUSTER, frozenset({1}), is_complete=True))
    bench.settle()
    assert shown(metrics, bench)["kquota_unvouched_brokers"] == 0
    assert shown(metrics, bench, arrival(7, bench.usage(1)))["kquota_unvouched_brokers"] == 1
    assert shown(metrics, bench, arrival(7, None))["kquota_unvouched_brokers"] == 0


def test_the_signing_mode_and_exempt_principals_are_shown(metrics: AgentMetrics, bench: Bench) -> None:
    assert "kquota_exempt_principals" not in shown(metrics, Bench())
    metrics.show(bench.run(after=1), Figures(signing=SigningMode.ACCEPT))
    seen = series(metrics)
    modes = {name: value for name, value in seen.items() if name.startswith("kquota_signing{")}
    assert modes == {
        'kquota_signing{mode="off"}': 0,
        'kquota_signing{mode="accept"}': 1,
        'kquota_signing{mode="required"}': 0,
    }
    assert seen["kquota_exempt_principals"] == 1
