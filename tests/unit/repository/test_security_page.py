"""SECURITY.md and docs/attacks.yml name tests that are there."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from tests.integration.security.attacks import WRITES
from tests.unit.repository.tree import REPOSITORY
from tools.reference.attacks import ThreatModel, read_threat_model


@pytest.fixture(scope="module")
def tests() -> str:
    """The source of all tests."""
    places = (("tests", "test_*.py"), ("extensions", "test_*.py"), ("callback/src/test", "*.java"))
    return "\n".join(
        path.read_text("utf-8") for root, pattern in places for path in (REPOSITORY / root).rglob(pattern)
    )


def no_tests(names: Iterable[str], tests: str) -> list[str]:
    return [name for name in names if re.search(rf"\b(def|void) {name}\(", tests) is None]


def test_every_test_that_stands_for_a_threat_exists(tests: str) -> None:
    page = (REPOSITORY / "SECURITY.md").read_text("utf-8").partition("| threat |")[2]
    for row in [line for line in page.splitlines() if line.startswith("|")][2:]:
        named = re.findall(r"`(\w+)`", row.split("|")[3])
        assert named, f"no test stands for: {row}"
        assert no_tests(named, tests) == []


def test_each_attack_of_the_threat_model_is_played_or_shown_by_a_test(tests: str) -> None:
    attacks = read_threat_model(REPOSITORY).attacks
    assert {name for name, attack in attacks.items() if attack.played} == WRITES.keys()
    shown = [name for attack in attacks.values() for name in attack.shown]
    assert shown
    assert no_tests(shown, tests) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"attacker": "a ghost"}, "a ghost is no attacker"),
        ({"required": "glory"}, "glory is no outcome"),
        ({"played": False}, "no test shows it"),
        ({"attacker": "other"}, "thief: without an attack"),
    ],
)
def test_a_threat_model_that_is_not_whole_is_refused(change: dict[str, object], problem: str) -> None:
    attack = {"attacker": "thief", "tries": "Steals.", "off": "held", "required": "nothing"}
    model = {
        "outcomes": {"nothing": "nothing", "held": "producers are held"},
        "attackers": {"thief": {"name": "A thief", "holds": "a key"}},
        "attacks": {"theft": attack},
    }
    assert ThreatModel.model_validate(model).most("thief", "off") == "producers are held"
    if change == {"attacker": "other"}:
        model["attackers"] = {**model["attackers"], "other": {"name": "Another", "holds": "no key"}}
    model["attacks"] = {"theft": attack | change}
    with pytest.raises(ValueError, match=problem):
        ThreatModel.model_validate(model)
