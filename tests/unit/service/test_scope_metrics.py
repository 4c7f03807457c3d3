"""The metrics of a decision about single topics, and of what the plug-in makes of it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from kquota.guard.applied_state import AppliedScope
from kquota.guard.report import CycleReport
from kquota.policy.topic_scope import NoScope, TopicScope
from kquota.service.metrics import AgentMetrics
from tests.unit.guard.cycles import Bench, applied_state
from tests.unit.service.test_metrics import FALLBACK, series


@pytest.fixture
def report() -> CycleReport:
    """The report of an agent that has decided."""
    bench = Bench()
    bench.settle()
    return bench.run()


def shown(report: CycleReport) -> dict[str, float]:
    """Return the content of a scrape after this cycle."""
    metrics = AgentMetrics("1.2.3")
    metrics.show(report)
    return series(metrics)


def test_topics_that_are_held_are_counted(report: CycleReport) -> None:
    scope = TopicScope({"a": Fraction(0), "b": Fraction(0), "c": Fraction(1, 2)}, Fraction(3, 4))
    seen = shown(replace(report, decision=replace(FALLBACK, scope=scope)))
    assert seen['kquota_topics_held{state="PAUSE"}'] == 2
    assert seen['kquota_topics_held{state="THROTTLE"}'] == 1
    assert seen["kquota_other_topics_factor_ratio"] == 0.75
    seen = shown(replace(report, decision=replace(FALLBACK, scope=None)))
    assert not [name for name in seen if name.startswith("kquota_topics_held")]
    assert seen["kquota_other_topics_factor_ratio"] == 0


@pytest.mark.parametrize(
    ("scope", "no_scope", "cause"),
    [
        (None, None, None),
        (TopicScope({"a": Fraction(0)}), None, None),
        (TopicScope({"a": Fraction(0)}, Fraction(99, 100)), None, "no-list"),
        (None, NoScope((2, "/dev/sda1")), "no-list"),
        (None, NoScope(None), "too-many"),
    ],
)
def test_a_scope_that_is_wider_than_the_volumes_over_a_limit_has_its_cause(
    report: CycleReport, scope: TopicScope | None, no_scope: NoScope | None, cause: str | None
) -> None:
    seen = shown(replace(report, decision=replace(FALLBACK, scope=scope, no_scope=no_scope)))
    widened = {name: value for name, value in seen.items() if "scope_widened" in name}
    assert widened == ({} if cause is None else {f'kquota_scope_widened{{cause="{cause}"}}': 1})


def test_the_scope_in_force_is_the_one_that_the_plug_in_reports(report: CycleReport) -> None:
    for applied, other in ((AppliedScope.TOPICS, "cluster"), (AppliedScope.CLUSTER, "topics")):
        seen = shown(replace(report, applied=applied_state(scope=applied)))
        assert seen[f'kquota_applied_scope{{scope="{applied}"}}'] == 1
        assert seen[f'kquota_applied_scope{{scope="{other}"}}'] == 0
    assert not [name for name in shown(report) if "applied_scope" in name], "it reports nothing"


def test_the_topics_of_the_cluster_are_those_that_the_plug_in_reports(report: CycleReport) -> None:
    assert shown(replace(report, applied=applied_state(cluster_topics=4212)))["kquota_cluster_topics"] == 4212
    assert "kquota_cluster_topics" not in shown(replace(report, applied=applied_state()))


def test_starving_clients_are_those_that_the_plug_in_counts(report: CycleReport) -> None:
    assert shown(replace(report, applied=applied_state(starving=20)))["kquota_applied_starving_clients"] == 20
    assert "kquota_applied_starving_clients" not in shown(report), "it reports nothing"
