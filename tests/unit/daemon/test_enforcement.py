"""The mode that is written, for every combination of inputs."""

from __future__ import annotations

import itertools

import pytest

from kquota.core.decision import Mode
from kquota.daemon.enforcement import enforcement


@pytest.mark.accepts("F32")
@pytest.mark.parametrize(
    ("granted", "verified", "contradicted"), list(itertools.product([False, True], repeat=3))
)
def test_enforcing_needs_a_proof_once_and_no_proof_of_the_contrary(
    granted: bool, verified: bool, contradicted: bool
) -> None:
    result = enforcement(
        Mode.ENFORCE, granted=granted, verified=verified, contradicted=contradicted, sentence="because"
    )
    enforces = verified or (granted and not contradicted)
    assert result.mode is (Mode.ENFORCE if enforces else Mode.OBSERVE)
    assert result.newly_granted == (verified and not granted)
    assert ("because" in result.sentence) == (not verified)
    assert result.sentence.startswith("enforcing" if enforces else "observing")


def test_what_is_configured_to_observe_observes() -> None:
    result = enforcement(Mode.OBSERVE, granted=True, verified=True, contradicted=False, sentence="x")
    assert (result.mode, result.newly_granted) == (Mode.OBSERVE, False)
    assert result.sentence == "observing, as configured"
