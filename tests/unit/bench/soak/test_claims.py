"""The soak's claims hold for a clean hour and break for each kind of fault alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.ledger.audit import Account
from bench.ledger.figures import Audited, Trouble
from bench.loads import Client, Delivery
from bench.soak.figures import Crossed, Injected, Soaked, claims
from bench.soak.growth import Growth, Sample

CLEAN = Soaked(1, 60.0, 6, 100, 210, 10**9, 0.9, (), 0, 220)
NOTHING = Account(*[0] * 14)
AUDITED = Audited(Client.JAVA, Delivery.IDEMPOTENT, True, "volume", Trouble.FAULTS_BY_LOT, None, NOTHING, {})
CROSSED = Crossed("PAUSE", (0.1, 0.2), (1_000_000, 3_000_000), (40e6, 40e6))
INJECTED = Injected("an agent is killed", {"PAUSE": 2}, (1.0, 2.0))
SAMPLE = Sample(100 * 2**20, 30, 20)
FLAT = Growth("agent 1", SAMPLE, SAMPLE, SAMPLE)
FIGURES = [CLEAN, CROSSED, INJECTED, FLAT, AUDITED]


def broken(figures: list[object]) -> list[str]:
    return [claim.name for claim in claims(figures) if not claim.holds]


def test_a_clean_hour_breaks_no_claim_and_each_is_asserted() -> None:
    assert broken(FIGURES) == []
    assert all(claim.asserted for claim in claims(FIGURES))
    after_a_kill = replace(CLEAN, connections=109)
    assert broken([after_a_kill, *FIGURES[1:]]) == []


@pytest.mark.parametrize(
    ("was", "instead", "name"),
    [
        (CLEAN, replace(CLEAN, usual_connections=199), "connections of producers: at least 200"),
        (CLEAN, replace(CLEAN, topics=39), "topics: at least 40"),
        (CLEAN, replace(CLEAN, states_not_kept=("agent 1 decided OPEN",)), "no decision without a reason"),
        (CROSSED, replace(CROSSED, past_bytes=(1, 40_000_001)), "no volume grows past its bound in PAUSE"),
        (FLAT, replace(FLAT, last=replace(SAMPLE, descriptors=50)), "no agent and no broker goes on growing"),
        (
            AUDITED,
            replace(AUDITED, account=replace(NOTHING, doubled=1)),
            "every promise to every producer is kept",
        ),
    ],
)
def test_one_bad_figure_breaks_its_claim(was: object, instead: object, name: str) -> None:
    assert broken([instead if one is was else one for one in FIGURES]) == [name]
