"""A short trial of kquota by the conformance suite: nothing is lost, and everything flows again by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.figures import Fill, Recovery
from conformance.plan import Plan
from conformance.systems import systems
from conformance.trial import run
from testbed.loopback.runtime import KafkaRuntime

SHORT = Plan(warm_seconds=2.0, before_seconds=6.0, slowed_seconds=4.0, hold_seconds=10.0)


@pytest.mark.long
@pytest.mark.parametrize("fill", list(Fill))
def test_a_full_disk_costs_no_broker_no_record_and_no_work_of_people(
    fill: Fill, kafka_runtime: KafkaRuntime, callback_jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPBACK_KAFKA_CALLBACK_JAR", str(callback_jar))
    row = run(systems()["kquota"](kafka_runtime), fill, SHORT, print)

    assert row.brokers_lost == ()
    assert row.log_dirs_lost == 0
    assert (row.lost, row.doubled, row.other_breaches) == (0, 0, {})
    assert row.acknowledged > 0
    assert row.recovery is Recovery.ITSELF
    assert row.held_seconds is not None
    assert row.overshoot_bytes < row.hard_left_bytes
