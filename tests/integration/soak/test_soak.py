"""The soak for a few minutes; `make soak` is the hour."""

from __future__ import annotations

import os
import time

import pytest

from bench.soak.campaign import soak
from bench.soak.figures import claims
from testbed.loopback.runtime import KafkaRuntime

MINUTES = float(os.environ.get("SOAK_MINUTES") or 3)


@pytest.mark.long
@pytest.mark.timeout(60 * MINUTES + 1200)
@pytest.mark.accepts("F2", "F5", "F11", "F28", "G20")
def test_faults_by_lot_break_no_promise_and_leave_no_leak(kafka_runtime: KafkaRuntime) -> None:
    seed = int(os.environ.get("SOAK_SEED") or time.time())
    print(f"\nseed {seed}")
    figures = soak(kafka_runtime, MINUTES, seed, print)
    assert [f"{one.name}: {one.measured}" for one in claims(figures) if not one.holds] == []
