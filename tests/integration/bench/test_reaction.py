"""Three breaches of a volume under agents at default settings, and at the same time under the peer."""

from __future__ import annotations

import pytest

from bench.agents_claims import reactions
from bench.figures import Reaction
from bench.harness.results import of
from bench.reaction import reaction
from testbed.loopback.runtime import KafkaRuntime


@pytest.mark.long
@pytest.mark.accepts("G8")
def test_a_breach_is_enforced_everywhere_several_times_sooner_than_by_the_peer(
    kafka_runtime: KafkaRuntime,
) -> None:
    claims = list(reactions(of(Reaction, reaction(kafka_runtime, repeats=3))))

    for claim in claims:
        print(f"{claim.name}: {claim.measured}")
    assert [claim.name for claim in claims if claim.asserted and not claim.holds] == []
    assert any(claim.asserted for claim in claims)
