"""Each attack of docs/attacks.yml, on the real topics and real agents: it achieves what SECURITY.md says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.security.attacks import WRITES
from tests.integration.security.stages import Stages
from tests.integration.spine.fleet import ORDERS_TOPIC, USAGE_TOPIC
from tools.reference.attacks import read_threat_model

_ATTACKS = {
    name: one for name, one in read_threat_model(Path(__file__).parents[3]).attacks.items() if one.played
}
_PERMITTED: dict[str, tuple[str, ...]] = {
    "stranger": (),
    "granted": (USAGE_TOPIC, ORDERS_TOPIC),
    "broker": (USAGE_TOPIC, ORDERS_TOPIC),
    "operator": (ORDERS_TOPIC,),
    "issuer": (ORDERS_TOPIC,),
}
"""The topics that Kafka lets an attacker write; the others only the usage topic."""

_WITHOUT_SIGNATURES = {"invented-broker", "other-full", "granted-orders", "hold-pause"}
"""Attacks that each change plays with signatures off, too: of each outcome but those that take longest."""


def _permitted(name: str) -> tuple[str, ...]:
    return _PERMITTED.get(_ATTACKS[name].attacker, (USAGE_TOPIC,))


def _cases() -> Iterator[object]:
    """Yield each attack in each mode, with one change of mode and few of stages.

    A broker that is silenced stays so: that is last.
    """

    def place(name: str) -> tuple[bool, str]:
        stage, _ = WRITES[name]
        return stage == "silenced", stage

    for mode in ("off", "required"):
        for name in sorted(_ATTACKS, key=place):
            is_long = _ATTACKS[name].long or (mode == "off" and name not in _WITHOUT_SIGNATURES)
            marks = [pytest.mark.long] if is_long else []
            yield pytest.param(mode, name, id=f"{mode}-{name}", marks=marks)


@pytest.mark.accepts("G10")
@pytest.mark.parametrize(("mode", "name"), list(_cases()))
def test_an_attack_achieves_what_the_threat_model_says(stages: Stages, mode: str, name: str) -> None:
    stages.switch(mode)
    attacker = stages.armoury.attacker(_ATTACKS[name].attacker)
    achieved = stages.play(*WRITES[name], attacker)
    print(f"signing {mode}: {name} achieves {achieved}")
    assert achieved == getattr(_ATTACKS[name], mode)
    permitted = _permitted(name)
    denied = {topic: 0 if topic in permitted else count for topic, count in attacker.records.items()}
    assert attacker.denied == denied
