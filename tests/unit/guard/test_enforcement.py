"""The mode that is written, for every combination of inputs."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from kquota.guard.applied_verification import Verification
from kquota.guard.enforcement import CONTRADICTION_SECONDS, Enforcement, Grant
from kquota.policy.decision import Mode
from tests.unit.guard.cycles import CLUSTER, NEWS


def judged(
    wanted: Mode, *, granted: bool, verified: bool, contradicted: bool, cluster_id: str | None = CLUSTER
) -> Enforcement:
    """The mode after the plug-in has shown the same for long enough."""
    grant = Grant(CLUSTER if granted else None)
    verification = Verification(verified, contradicted, "because")
    news = replace(NEWS, cluster_id=cluster_id)
    before = grant.judge(wanted, verification, news, 100.0)
    after = grant.judge(wanted, verification, news, 100.0 + CONTRADICTION_SECONDS)
    assert before == after or contradicted, "only lasting contradiction changes anything"
    return after


@pytest.mark.accepts("F32")
@pytest.mark.parametrize(
    ("granted", "verified", "contradicted"), list(itertools.product([False, True], repeat=3))
)
def test_enforcing_needs_a_proof_once_and_no_proof_of_the_contrary(
    granted: bool, verified: bool, contradicted: bool
) -> None:
    result = judged(Mode.ENFORCE, granted=granted, verified=verified, contradicted=contradicted)
    enforces = verified or (granted and not contradicted)
    assert result.mode is (Mode.ENFORCE if enforces else Mode.OBSERVE)
    assert result.newly_granted == (verified and not granted)
    assert ("because" in result.sentence) == (not verified)
    assert result.sentence.startswith("enforcing" if enforces else "observing")


def test_what_is_configured_to_observe_observes() -> None:
    result = judged(Mode.OBSERVE, granted=True, verified=True, contradicted=False)
    assert (result.mode, result.newly_granted) == (Mode.OBSERVE, False)
    assert result.sentence == "observing, as configured"


@pytest.mark.parametrize(("cluster_id", "mode"), [(None, Mode.ENFORCE), ("another", Mode.OBSERVE)])
def test_a_grant_is_for_its_cluster_and_holds_until_the_cluster_is_known(
    cluster_id: str | None, mode: Mode
) -> None:
    found = judged(Mode.ENFORCE, granted=True, verified=False, contradicted=False, cluster_id=cluster_id)
    assert found.mode is mode


def test_a_proof_counts_once_the_cluster_is_known() -> None:
    found = judged(Mode.ENFORCE, granted=False, verified=True, contradicted=False, cluster_id=None)
    assert (found.mode, found.newly_granted) == (Mode.OBSERVE, False)
