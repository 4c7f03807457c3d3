"""How long an agent that has just started waits for Kafka before its first decision."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kquota.disks.observation import Failure
from kquota.formats.records import TopicKind
from kquota.guard.cycle import LONELY_PATIENCE_SECONDS, START_PATIENCE_SECONDS
from kquota.policy.decision import FallbackAction, State
from tests.unit.guard.cycles import NEWS, Bench, settings_with, volume


def nobody_answers(bench: Bench) -> None:
    bench.news, bench.behind = replace(NEWS, active_brokers=None), set(TopicKind)


def decides_after(bench: Bench, seconds: float) -> bool:
    """Whether the first decision, the fallback, comes then and not half a second before."""
    assert bench.run(after=seconds - 0.5).decision is None
    decision = bench.run(after=0.5).decision
    return decision is not None and decision.state is State.PAUSE


def test_at_a_cold_boot_without_kafka_the_broker_need_not_wait_long_for_a_decision() -> None:
    bench = Bench()
    nobody_answers(bench)
    assert decides_after(bench, LONELY_PATIENCE_SECONDS)


def test_while_an_earlier_lease_runs_nothing_is_decided_without_kafka() -> None:
    ends_seconds = START_PATIENCE_SECONDS - 5
    bench = Bench(covered_seconds=ends_seconds)
    nobody_answers(bench)
    assert decides_after(bench, ends_seconds)


def test_a_long_lease_covers_no_more_than_the_patience() -> None:
    bench = Bench(covered_seconds=10 * START_PATIENCE_SECONDS)
    nobody_answers(bench)
    assert decides_after(bench, START_PATIENCE_SECONDS)


@pytest.mark.accepts("F2")
def test_a_disk_that_was_never_seen_is_no_breach_to_act_upon_at_once() -> None:
    # The unknown state would mean OPEN, while the earlier instance holds producers for another broker's disk.
    bench = Bench(settings=settings_with(fallback_action=FallbackAction.OPEN), covered_seconds=20)
    nobody_answers(bench)
    unseen = Failure(None, "not sampled yet")
    bench.ports.volumes = (volume(0, capacity_bytes=None, consumed_bytes=None, failures=(unseen,)),)
    assert bench.run().decision is None
    bench.ports.volumes = (volume(5),)
    assert bench.run().decision is not None, "a real one is"
