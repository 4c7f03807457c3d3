"""A stolen certificate: the list that revokes it is replaced while the agents run."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from kquota.formats.record_verifier import ReplayGuard
from kquota.trust.signer import FileSigner, SigningFiles
from kquota.trust.signing import RecordSigner
from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.fleet import USAGE_TOPIC, Fleet
from tests.integration.spine.test_signed_reports import Intruder, await_signed, refused
from tests.integration.waiting import eventually
from tests.unit.wording import say


class Revocations:
    """Certificates of their own for each agent, and the list that all agents read."""

    def __init__(self, fleet: Fleet, directory: Path) -> None:
        self._fleet, self._list = fleet, directory / "revoked"
        self.replace("# none\n")

    def issue(self, name: str, uri: str) -> SigningFiles:
        identity = self._fleet.cluster.authority.issue(name, uris=[f"kquota://*/{uri}"])
        return SigningFiles(identity.certificate, identity.key, identity.certificate)

    def sign_with(self, broker_id: int, files: SigningFiles) -> None:
        """Have the agent of a broker demand signatures, and sign with this certificate."""
        named = {"certificate_file": str(files.certificate), "key_file": str(files.key)}
        signing = {"mode": "required", "revoked_file": str(self._list), **named}
        self._fleet.agents[broker_id].reload(signing=signing)

    def replace(self, text: str) -> float:
        """Replace the list in one step; return when, on the monotonic clock."""
        written = self._list.with_suffix(".new")
        written.write_text(text, "utf-8")
        written.replace(self._list)
        return time.monotonic()

    def open_soon(self, text: str) -> None:
        """Replace the list, which ends a PAUSE.

        The second that this may take is that of tests/unit/guard/test_revocation.py, whose clock is not the
        machine's. It can't be tried twice here: an agent that reads again signs on above the thief's counter,
        and its next report takes the place of the thief's record though the list is empty again.
        """
        replaced = self.replace(text)
        self._fleet.await_decided("OPEN")
        print(f"\nthe list was in force after {time.monotonic() - replaced:.2f} s")


def fingerprint_line(files: SigningFiles) -> str:
    """Return the output of openssl for a certificate's key."""
    key = f"openssl x509 -noout -pubkey -in '{files.certificate}'"
    command = f"{key} | openssl pkey -pubin -outform DER | openssl dgst -sha256"
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stdout


@pytest.mark.accepts("G12")
def test_a_revoked_certificate_s_reports_stop_counting_within_a_second_without_a_restart(
    fleet: Fleet, tmp_path: Path
) -> None:
    revocations = Revocations(fleet, tmp_path)
    stolen = revocations.issue("stolen", "agent/3")
    for broker_id in (1, 2):
        revocations.sign_with(broker_id, revocations.issue(f"signer-{broker_id}", f"agent/{broker_id}"))
    revocations.sign_with(3, stolen)
    await_signed(fleet)
    ahead = round(time.time() * 1000) + 3_000_000  # of the agent's counter, as far as readers take it
    thief = Intruder(fleet, RecordSigner(FileSigner(stolen), USAGE_TOPIC, ReplayGuard(), ahead))
    renewed = revocations.issue("renewed", "agent/3")
    revocations.sign_with(3, renewed)
    thief.write("3", thief.full(InstanceId="a thief"), signed=True)
    fleet.await_decided("PAUSE", [1, 2])
    pids = [agent.process.pid for agent in fleet.of()]

    marks = fleet.marks()
    revocations.open_soon(f"# the disk of host 3 was sold\n{fingerprint_line(stolen)}")
    before = refused(fleet.agents[1], "revoked")
    sentence = say("refused-revoked", key=3)

    def is_refused(agent: AgentProcess) -> bool:
        """Write again until the agent takes it for news: it may still read the topic again."""
        thief.write("3", thief.full(InstanceId="a thief"), signed=True)
        return ("WARNING", sentence) in agent.journal(marks[agent.broker_id])

    for agent in fleet.of([1, 2]):
        eventually(lambda agent=agent: is_refused(agent), "the thief's record is refused")
    eventually(lambda: refused(fleet.agents[1], "revoked") > before, "it is counted")
    await_signed(fleet)
    assert [agent.state for agent in fleet.of()] == ["OPEN"] * 3

    marks, agent = fleet.marks(), fleet.agents[3]
    both = fingerprint_line(stolen) + fingerprint_line(renewed)
    revocations.replace(both)
    fleet.await_decided("PAUSE", [1, 2])
    eventually(lambda: agent.told("the own certificate is revoked", marks[3]), "it says so")
    ((level, said),) = agent.told("the own certificate is revoked", marks[3])
    assert level == "WARNING"
    assert " ".join(said.split()) in " ".join(agent.cli("status").stdout.split())
    agent.await_metric(1, "kquota_signing_certificate_revoked")
    agent.await_metric(2, "kquota_signing_revoked_certificates")

    revocations.replace(f"{both}nonsense\n")
    words = "the revoked certificates of before stay in force"
    eventually(lambda: fleet.agents[1].told(f"{words}: {tmp_path}", marks[1]), "the bad line is reported")
    ((_, problem),) = fleet.agents[1].told(words, marks[1])
    assert "line 3, 'nonsense', is no fingerprint; allowed: lines with the SHA-256 fingerprint" in problem

    revocations.replace(both)
    revocations.sign_with(3, revocations.issue("renewed-again", "agent/3"))
    fleet.await_decided("OPEN")
    agent.await_metric(0, "kquota_signing_certificate_revoked")
    assert pids == [agent.process.pid for agent in fleet.of()]


@pytest.mark.long
@pytest.mark.accepts("G12")
def test_an_order_of_a_revoked_operator_ends(fleet: Fleet, tmp_path: Path) -> None:
    revocations = Revocations(fleet, tmp_path)
    for broker_id in fleet.agents:
        revocations.sign_with(broker_id, revocations.issue(f"signer-{broker_id}", f"agent/{broker_id}"))
    await_signed(fleet)
    files = revocations.issue("operator", "operator/jane")
    agent = fleet.agents[1]
    good, hold = agent.operator, ("hold", "pause", "--for", "10m", "--reason", "a test")
    agent.operator = tmp_path / "operator.properties"
    agent.operator.touch(mode=0o600)
    names = f"kquota.signing.certificate={files.certificate}\nkquota.signing.key={files.key}\n"
    agent.operator.write_text(good.read_text("utf-8") + names)
    try:
        revocations.replace("")
        eventually(lambda: agent.metric("kquota_signing_revoked_certificates") == 0, "the list is empty")
        agent.order(*hold)
        fleet.await_decided("PAUSE")
        revocations.open_soon(fingerprint_line(files))
        refused_order = agent.cli(*hold)
        assert refused_order.returncode == 1
        assert f"names a certificate that {tmp_path / 'revoked'} revokes" in refused_order.stderr
        # Tests that demand signatures, too, read this order again, and take no unsigned end of it.
        revocations.replace("")
        agent.order("hold", "release", "--reason", "done")
        fleet.await_decided("OPEN")
    finally:
        agent.operator = good
