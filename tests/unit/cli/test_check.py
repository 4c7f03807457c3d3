"""`kquota check` in the manner of monitoring plug-ins."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.unit.cli.command import Host, Said, kquota, pause, throttle
from tests.unit.policy.golden import sample
from tests.unit.wording import say

OPEN = sample("applied", "open")
PAUSED = sample("applied", "pause")
THROTTLED = sample("applied", "throttle")
LOST = sample("applied", "pause-lost-at-start")


def first_line(said: Said) -> str:
    assert said.err == ""
    return said.out.splitlines()[0]


def test_all_is_well(host: Host) -> None:
    host.decide()
    host.apply(OPEN)
    said = host.run("check")
    assert said.code == 0
    assert re.fullmatch(
        r"KQUOTA OK - OPEN: no volume is over its soft limit"
        r" \| applied_factor=1\.0;;;0;1 factor=1\.0;;;0;1 lease=1\d\.\d+s;;;0",
        first_line(said),
    )


def test_throttle_is_a_warning_and_pause_critical(host: Host) -> None:
    host.decide(**throttle())
    host.apply(OPEN)
    said = host.run("check")
    assert said.code == 1
    assert first_line(said).startswith(
        "KQUOTA WARNING - THROTTLE to 0.5: volume /dev/sdb1 of broker 3 has 50 % of the way"
    )
    host.decide(**pause())
    host.apply(PAUSED)
    said = host.run("check")
    assert said.code == 2
    assert first_line(said).startswith(
        f"KQUOTA CRITICAL - PAUSE: {say('over-hard', volume='/dev/sdb1', broker=3)} |"
    )


@pytest.mark.parametrize(
    ("lease_seconds", "changes", "applied", "code", "text"),
    [
        (-1, {}, OPEN, 2, "the decision's lease has ended: is the agent running?"),
        (20, {"boot_id": "another"}, OPEN, 2, "the decision's lease has ended"),
        (20, {}, None, 1, "enforcement unverified: "),
        (20, {}, LOST, 2, "the plug-in has no decision: "),
        (20, {}, PAUSED, 1, "decided OPEN, applied PAUSE"),
    ],
)
def test_a_lease_that_ended_and_a_plug_in_that_differs_are_told(
    host: Host, lease_seconds: float, changes: dict[str, Any], applied: Any, code: int, text: str
) -> None:
    host.decide(lease_seconds, **changes)
    if applied is not None:
        host.apply(applied)
    said = host.run("check")
    assert (said.code, text in first_line(said)) == (code, True), said.out


@pytest.mark.accepts("G22")
def test_a_broken_glass_is_a_warning_and_said_beside_the_pause_that_it_undoes(host: Host) -> None:
    sentence = "Broker 1 holds no producer although enforcing is decided: mode observe is in force there"
    host.decide()
    host.apply(OPEN, mode="observe", broker_mode="observe")
    said = host.run("check")
    assert said.code == 1
    assert first_line(said).startswith(f"KQUOTA WARNING - {sentence} (kquota.mode of the broker")
    host.decide(**pause())
    host.apply(PAUSED, mode="observe", broker_mode="observe", mechanism="none")
    said = host.run("check")
    assert said.code == 2
    paused = f"KQUOTA CRITICAL - PAUSE: {say('over-hard', volume='/dev/sdb1', broker=3)}. "
    assert first_line(said).startswith(paused + sentence)
    host.decide(**pause(), mode="observe")
    assert "although" not in first_line(host.run("check")), "it observes as decided"


def test_starved_producers_are_said_beside_the_throttle_that_starves_them(host: Host) -> None:
    sentence = (
        "The throttle factor starves 20 producers of broker 1: turns are more than 120 s apart, and by"
        " default producers keep a record for no longer. Remedies: a higher floor of the factor (the"
        " broker's kquota.produce.factor.min.ratio), fewer connections, or a PAUSE until there is room."
    )
    host.decide(**throttle())
    host.apply(THROTTLED, starving=20)
    said = host.run("check")
    assert said.code == 1
    assert re.match(rf"KQUOTA WARNING - THROTTLE to 0\.5: [^|]*\. {re.escape(sentence)} \|", first_line(said))
    assert sentence in host.run("decision").out.splitlines()
    assert host.run("decision", "--json").document["applied"]["starving"] == 20
    host.apply(THROTTLED, starving=1)
    assert "starves 1 producer of broker 1: " in first_line(host.run("check"))
    host.apply(THROTTLED)
    assert "starves" not in first_line(host.run("check")), "a plug-in that does not count them"


def test_no_decision_is_critical(host: Host) -> None:
    host.apply(OPEN)
    said = host.run("check")
    assert said.code == 2
    assert str(host.decision_file) in first_line(said)


def test_without_a_usable_configuration_the_state_is_unknown(host: Host) -> None:
    host.configure(staleness_seconds="soon")
    said = host.run("check")
    assert said.code == 3
    assert first_line(said).startswith("KQUOTA UNKNOWN - ")
    assert "staleness_seconds" in first_line(said)
    host.configure()
    host.server_properties.unlink()
    said = host.run("check")
    assert said.code == 3
    assert str(host.server_properties) in first_line(said)
    assert kquota("check", "--config", "/nowhere/agent.yml").code == 3
