"""The runs of the ledger: the faults that each has, and the promise that Kafka keeps in them."""

from __future__ import annotations

import pytest

from bench.ledger.__main__ import BENCH, FAULTS, RUNS
from bench.ledger.audit import Account
from bench.ledger.campaign import Run
from bench.ledger.faults import PLANS, Cycle, FaultPlan
from bench.ledger.figures import Audited, Trouble
from bench.loads import Client, Delivery
from kquota.policy.decision import Scope, State

LOST = Account(100, 100, 0, 99, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)


def test_each_run_has_a_name_of_its_own_that_says_what_is_tried() -> None:
    names = [run.name for run in RUNS]
    assert len(set(names)) == len(names)
    assert {f"fence-{word}" for word in ("network", "partition", "disk", "agents")} <= set(names)
    assert Run(fence=False, scope=Scope.CLUSTER, trouble=Trouble.DISK, patience_seconds=1.0).name == (
        "governor-cluster-disk-impatient"
    )


def test_each_fault_meets_fence_and_governor_and_both_scopes() -> None:
    for trouble in FAULTS:
        met = {(run.fence, run.scope) for run in RUNS if run.trouble is trouble}
        assert met == {(True, Scope.VOLUME), (False, Scope.CLUSTER)}


@pytest.mark.parametrize("run", [run for run in RUNS if run.trouble in FAULTS], ids=lambda run: run.name)
def test_the_cycles_of_a_run_with_faults_have_them_in_throttle_and_in_pause(run: Run) -> None:
    within = [run.faults.cycle(number).within for number in range(run.cycles)]
    for state in (State.THROTTLE, State.PAUSE):
        assert any(faults.get(state) for faults in within)
    assert len(run.faults.cycles) <= run.cycles, "no cycle of the plan is left out"


def test_only_the_usual_troubles_have_no_fault_at_all() -> None:
    assert [trouble for trouble, plan in PLANS.items() if plan == FaultPlan()] == [Trouble.NONE]
    assert {run.trouble for run in RUNS} == PLANS.keys()


def test_cycles_come_in_turn() -> None:
    first, second = Cycle(), Cycle(within={State.PAUSE: ()})
    plan = FaultPlan((first, second))
    assert [plan.cycle(number) for number in range(3)] == [first, second, first]


def test_clients_on_bad_networks_wait_less_for_an_answer_and_impatient_ones_less_than_that() -> None:
    network = Run(fence=True, trouble=Trouble.NETWORK)
    assert network.client_settings["request.timeout.ms"] == "4000"
    both = Run(fence=True, trouble=Trouble.NETWORK, patience_seconds=4.0).client_settings
    assert (both["request.timeout.ms"], both["socket.timeout.ms"]) == ("2000", "4000")
    assert Run(fence=True).client_settings == {}


@pytest.mark.parametrize(
    ("trouble", "allowed"),
    [
        (Trouble.NONE, False),
        (Trouble.NETWORK, False),
        (Trouble.AGENTS, False),
        (Trouble.BROKERS_KILLED, True),
        (Trouble.PARTITION, True),
        (Trouble.DISK, True),
        (Trouble.FAULTS_BY_LOT, True),
    ],
)
def test_acks_1_may_lose_a_record_only_where_a_leader_is_lost(trouble: Trouble, allowed: bool) -> None:
    audited = Audited(Client.JAVA, Delivery.ACKS_1, True, "volume", trouble, None, LOST, {})
    assert audited.broken == ({} if allowed else {"lost": 1})


@pytest.mark.parametrize("trouble", Trouble)
@pytest.mark.parametrize("delivery", [Delivery.ACKS_ALL, Delivery.IDEMPOTENT, Delivery.TRANSACTIONAL])
def test_no_trouble_allows_a_replicated_record_to_be_lost(trouble: Trouble, delivery: Delivery) -> None:
    audited = Audited(Client.LIBRDKAFKA, delivery, True, "volume", trouble, None, LOST, {})
    assert audited.broken == {"lost": 1}
    assert [claim.holds for claim in BENCH.claims([audited])] == [False, True]
