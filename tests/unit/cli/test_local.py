"""`kquota decision` and `config` with real files."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

import kquota as package
from kquota.cli.local_state import disagreement
from tests.unit.cli.command import Host, kquota, throttle
from tests.unit.policy.golden import sample

OPEN = sample("applied", "open")


def test_a_decision_is_shown_with_its_lease_and_what_is_applied(host: Host) -> None:
    written = host.decide(**throttle())
    host.apply(OPEN)
    said = host.run("decision")
    assert (said.code, said.err) == (0, "")
    first, decided, applies, exempt = said.out.splitlines()
    assert first.startswith("THROTTLE to 0.5: volume /dev/sdb1 of broker 3 has 50 % of the way")
    assert decided.startswith("broker 1 (this host): decided THROTTLE (enforce), lease runs for ")
    assert applies.startswith("broker 1 (this host): applies OPEN (enforce, by none)")
    seen = "broker 1 (this host): exempt principals seen in the last ten minutes:"
    assert exempt == f"{seen} {OPEN['exempt'][0]['principal']}"
    many = [{**OPEN["exempt"][0], "principal": f"User:{number}"} for number in range(11)]
    host.apply({**OPEN, "exempt": many})
    names = "; ".join(f"User:{number}" for number in (0, 1, 10, 2, 3, 4, 5, 6))
    assert host.run("decision").out.splitlines()[-1] == f"{seen} {names} and 3 more"
    host.apply({**OPEN, "kept": "the decision's lease ran out"})
    kept = host.run("decision").out.splitlines()[2]
    assert kept.endswith("by none); the last decision holds, because the decision's lease ran out")
    document = host.run("decision", "--json").document
    assert {key: document["decision"][key] for key in written} == written
    assert document["applied"]["state"] == "OPEN"
    assert document["applied_problem"] is document["decision_problem"] is None
    assert 0 < document["lease_seconds_left"] <= 20


@pytest.mark.parametrize(
    ("decided", "found", "differs"),
    [
        (("OPEN", 1.0), ("OPEN", 1.0), False),
        (("THROTTLE", 0.5), ("THROTTLE", 0.45), False),
        (("THROTTLE", 0.5), ("THROTTLE", 0.3), True),
        (("OPEN", 1.0), ("THROTTLE", 0.99), True),
        (("PAUSE", 0.0), ("OPEN", 1.0), True),
    ],
)
def test_what_the_agent_has_decided_otherwise_is_said(
    decided: tuple[str, float], found: tuple[str, float], differs: bool
) -> None:
    state, factor = decided
    decision = {"state": state, "factor": Decimal(str(factor)), "sentence": f"{state}: for a reason"}
    local = {"decision": decision, "lease_seconds_left": 3.0}
    said = disagreement({"state": found[0], "factor": found[1]}, local)
    expected = f"The agent on this host has decided otherwise: {state}: for a reason. If that stays so:"
    assert said == (f"{expected} journalctl -u kquota-agent" if differs else None)


@pytest.mark.parametrize(
    "local", [{"decision": None}, {"decision": {"state": "OPEN"}, "lease_seconds_left": 0.0}]
)
def test_nothing_is_said_of_a_decision_that_does_not_hold(local: dict[str, Any]) -> None:
    assert disagreement({"state": "PAUSE", "factor": 0.0}, local) is None


def test_without_a_decision_in_force_it_fails_and_says_why(host: Host) -> None:
    said = host.run("decision")
    assert said.code == 1
    assert str(host.decision_file) in said.out
    assert "enforcement unverified" in said.out
    document = host.run("decision", "--json").document
    assert document["decision"] is document["lease_seconds_left"] is None
    host.decide(lease_seconds=-5)
    said = host.run("decision")
    assert said.code == 1
    assert "lease has ended" in said.out


def test_a_decision_others_could_have_written_is_refused(host: Host) -> None:
    host.decide()
    host.decision_file.parent.chmod(0o777)
    said = host.run("decision")
    assert said.code == 1
    assert "OPEN: " not in said.out
    host.decision_file.parent.chmod(0o755)
    host.decision_file.write_text("{", "utf-8")
    assert host.run("decision").code == 1
    host.decide(factor=0.5)
    said = host.run("decision")
    assert said.code == 1
    assert "factor 0.5 is not OPEN" in said.out


def test_a_good_configuration_is_called_good(host: Host) -> None:
    said = host.run("config", "check")
    assert (said.code, said.err) == (0, "")
    assert said.out == f"{host.config} is good: broker 1, directories {host.log_dir}\n"
    host.configure(fallback_action="open")
    assert "warning: fallback_action is open: " in host.run("config", "check").out


def test_a_broker_whose_id_is_on_its_command_line_has_it_from_the_configuration(host: Host) -> None:
    host.server_properties.write_text(f"log.dirs={host.log_dir}\n", "utf-8")
    assert "set broker.node_id" in host.run("config", "check").err
    host.configure(broker={"server_properties": str(host.server_properties), "node_id": 7})
    said = host.run("config", "check")
    assert (said.code, said.out) == (
        0,
        f"{host.config} is good: broker 7, directories {host.log_dir}\n",
    ), said.err


def test_everything_that_is_wrong_is_said(host: Host) -> None:
    host.configure(mode="enfroce", staleness_seconds=0, unheard_of=1)
    said = host.run("config", "check")
    assert (said.code, said.out) == (78, "")
    for key in ("mode", "staleness_seconds", "unheard_of"):
        assert key in said.err
    host.configure()
    host.server_properties.write_text("log.dirs=relative\nnode.id=1\n", "utf-8")
    said = host.run("config", "check")
    assert said.code == 78
    assert "'relative' is relative" in said.err


def test_what_no_client_can_be_built_from_is_named(host: Host) -> None:
    secured = {"bootstrap.servers": "x:1", "security.protocol": "SSL"}
    host.configure(kafka={**secured, "ssl.truststore.location": "/x.jks"})
    said = host.run("config", "check")
    assert (said.code, said.out) == (78, "")
    assert "Java TrustStores are not supported, use `ssl.ca.location`" in said.err
    host.configure(kafka={**secured, "ssl.ca.location": "/nonexistent.pem"})
    said = host.run("config", "check")
    assert (said.code, said.out.splitlines()[-1][-len(str(host.log_dir)) :]) == (0, str(host.log_dir))
    assert said.out.startswith("warning: The credential files cannot be used (")
    assert "kafka.ssl.ca.location: /nonexistent.pem: No such file" in said.out, "the agent waits for it"


@pytest.mark.parametrize(
    ("name", "value"), [("no.such.property", "1"), ("security.protocol", "SLL"), ("fetch.min.bytes", "many")]
)
def test_what_librdkafka_refuses_is_said_before_the_agent_starts(host: Host, name: str, value: str) -> None:
    host.configure(kafka={"bootstrap.servers": "x:1", name: value})
    said = host.run("config", "check")
    assert (said.code, said.out) == (78, "")
    assert name in said.err


def test_settings_are_shown_as_they_are_in_force_without_secrets(host: Host, tmp_path: Path) -> None:
    host.configure(kafka={"bootstrap.servers": "x:1", "sasl.password": "hunter2"})
    said = host.run("config", "show", KQUOTA_INTERVAL_SECONDS="7")
    assert said.code == 0, said.err
    shown = yaml.safe_load(said.out)
    assert shown["interval_seconds"] == 7
    assert shown["staleness_seconds"] == 60
    assert "hunter2" not in said.out
    assert host.run("config", "show", "--json").document["kafka"]["bootstrap.servers"] == "x:1"


def test_the_command_says_its_version_and_what_there_is() -> None:
    assert kquota("--version").out == f"kquota {package.__version__}\n"
    said = kquota("--help")
    assert said.code == 0
    for command in ("run", "status", "check", "decision", "volumes", "decide", "hold", "quarantine"):
        assert command in said.out
    assert kquota("unheard-of").code == 2
    assert kquota().code in (0, 2)


def test_an_unknown_environment_variable_of_ours_is_an_error(host: Host) -> None:
    said = host.run("config", "check", KQUOTA_UNHEARD_OF="1")
    assert said.code == 78
    assert "KQUOTA_UNHEARD_OF" in said.err
