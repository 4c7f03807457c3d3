"""Every acknowledged record is there after a PAUSE, as Kafka promises it to that way of delivery."""

from __future__ import annotations

import pytest

from bench.ledger.__main__ import FAULTS, RUNS
from bench.ledger.campaign import PROOF_RECORDS, Run, keep_books
from bench.ledger.figures import Trouble
from bench.ledger.producers import KINDS
from testbed.loopback.runtime import KafkaRuntime

SHORT = Run(fence=True, state_seconds=3.0, cycles=1)


@pytest.mark.accepts("G20")
@pytest.mark.parametrize(
    "run",
    [
        pytest.param(SHORT, id="fence"),
        pytest.param(Run(fence=False), id="governor", marks=pytest.mark.long),
        pytest.param(Run(fence=True, trouble=Trouble.BROKERS_KILLED), id="killed", marks=pytest.mark.long),
        pytest.param(Run(fence=True, patience_seconds=4.0), id="impatient", marks=pytest.mark.long),
        *(
            pytest.param(run, id=run.name.removeprefix("fence-"), marks=pytest.mark.long)
            for run in RUNS
            if run.trouble in FAULTS and run.fence
        ),
    ],
)
def test_every_promise_to_every_producer_is_kept(run: Run, kafka_runtime: KafkaRuntime) -> None:
    audited = keep_books(kafka_runtime, run, print)

    assert [(one.client, one.delivery) for one in audited] == [(kind.client, kind.delivery) for kind in KINDS]
    assert {one.where: one.broken for one in audited if one.broken} == {}
    assert min(one.account.acknowledged for one in audited) >= 2 * PROOF_RECORDS
    if run.trouble is Trouble.NETWORK:  # what was acknowledged in vain was sent again
        assert sum(one.account.doubled for one in audited) > 0
