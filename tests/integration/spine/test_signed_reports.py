"""Agents that sign their records, and an intruder with the key of one of them."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message, Producer

from kquota.formats.record_verifier import ReplayGuard
from kquota.formats.usage_format import parse_usage
from kquota.policy.timestamps import format_utc
from kquota.trust.signer import FileSigner, SigningFiles
from kquota.trust.signing import RecordSigner
from testbed.loopback.plug_in import agent_name
from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.fleet import GONE_BROKERS, USAGE_TOPIC, Fleet
from tests.integration.spine.test_hostile_records import INVENTED, report
from tests.integration.waiting import at_rest, eventually
from tests.unit.wording import say

GONE = str(GONE_BROKERS[0])


class Signers:
    """A certificate with a name for signatures for each agent, and for an operator."""

    def __init__(self, fleet: Fleet) -> None:
        self._authority = fleet.cluster.authority
        self._fleet = fleet

    def settings(self, name: str, mode: str) -> dict[str, str]:
        identity = self._authority.issue(f"signer-{name.replace('/', '-')}", uris=[f"kquota://*/{name}"])
        files = {"certificate_file": str(identity.certificate), "key_file": str(identity.key)}
        return {"mode": mode, **files}

    def demand(self, mode: str) -> None:
        """Reload every agent with that mode, one after the other."""
        for broker_id, agent in self._fleet.agents.items():
            agent.reload(signing=self.settings(f"agent/{broker_id}", mode))

    def record_signer(self, name: str) -> RecordSigner:
        files = self.settings(name, "required")
        paths = Path(files["certificate_file"]), Path(files["key_file"])
        return RecordSigner(FileSigner(SigningFiles(*paths, paths[0])), USAGE_TOPIC, ReplayGuard())


class Intruder:
    """A client with the key of the agent of broker 1: it may write to the topic, and sign as that agent."""

    def __init__(self, fleet: Fleet, record_signer: RecordSigner) -> None:
        self._cluster_id = fleet.usage_of(1)[-1][1]["ClusterId"]
        self._fleet, self._record_signer = fleet, record_signer
        self._producer = Producer({**fleet.cluster.client_configuration(agent_name(1)), "log_level": 0})

    def write(self, key: str, value: dict[str, Any] | None, *, signed: bool) -> None:
        raw = None if value is None else json.dumps(value).encode()
        partitions = len(self._producer.list_topics(USAGE_TOPIC).topics[USAGE_TOPIC].partitions)
        headers = (
            self._record_signer.headers(key.encode(), raw, self._cluster_id, partitions) if signed else ()
        )
        self.append(key.encode(), raw, list(headers))

    def append(self, key: bytes, value: bytes | None, headers: list[tuple[str, bytes]]) -> None:
        self._producer.produce(USAGE_TOPIC, key=key, value=value, headers=headers)
        assert self._producer.flush(60) == 0

    def full(self, **changes: Any) -> dict[str, Any]:
        return report(self._fleet, age_seconds=0, full=True, **changes)

    def hold(self) -> dict[str, Any]:
        until = format_utc(datetime.now(UTC) + timedelta(minutes=10))
        return {"Action": "pause", "Until": until, "Reason": "none", "Actor": "nobody"}


@pytest.fixture
def signers(fleet: Fleet) -> Signers:
    return Signers(fleet)


def genuine(fleet: Fleet, broker_id: int) -> list[Message]:
    """The records that the broker's agent has signed; its certificate names it in clear."""
    name = f"kquota://*/agent/{broker_id}".encode()
    return [
        message for message in fleet.records() if any(name in value for _, value in message.headers() or ())
    ]


def refused(agent: AgentProcess, cause: str) -> float:
    return agent.metric("kquota_records_refused_total", cause=cause) or 0


def unvouched(fleet: Fleet) -> list[float | None]:
    return [agent.metric("kquota_unvouched_brokers") for agent in fleet.of()]


def signed_by_all(fleet: Fleet) -> bool:
    brokers = json.loads(fleet.agents[2].order("status", "--json"))["brokers"]
    return [broker["signed"] for broker in brokers if broker["active"]] == [True] * 3


def await_signed(fleet: Fleet) -> None:
    eventually(lambda: signed_by_all(fleet), "the last report of each broker is signed")


def test_who_has_the_key_of_one_agent_holds_the_cluster_unless_signatures_are_required(
    fleet: Fleet, signers: Signers
) -> None:
    intruder = Intruder(fleet, signers.record_signer("agent/1"))
    attacks = {
        "3": intruder.full(InstanceId="an intruder"),
        GONE: intruder.full(),
    }
    for key, value in attacks.items():
        intruder.write(key, value, signed=True)
        fleet.await_decided("PAUSE", [1, 2])
        intruder.write(key, None, signed=True)
        fleet.await_decided("OPEN")
    intruder.write(INVENTED, intruder.full(), signed=True)
    eventually(lambda: unvouched(fleet) == [1, 1, 1], "a report of an invented broker does not count")
    intruder.write(INVENTED, None, signed=True)
    assert {agent.state for agent in fleet.of()} == {"OPEN"}
    attacks[INVENTED] = intruder.full()

    marks = fleet.marks()
    signers.demand("accept")
    await_signed(fleet)
    signers.demand("required")
    await_signed(fleet)
    assert "signing: required, every report is signed" in fleet.agents[2].order("status")
    ends = fleet.agents[2].metric("kquota_signing_authority_expiry_timestamp_seconds")
    assert ends is not None
    assert ends > time.time()

    reader = fleet.agents[2]

    def is_refused() -> bool:
        """Write until the reader takes it for news: after its reload it may still read the topic again."""
        intruder.write(INVENTED, None, signed=False)
        return bool(reader.told(f"the record of key {INVENTED} is refused", since=marks[2]))

    eventually(is_refused, "a record without a signature is refused")
    at_rest(lambda: refused(reader, "unsigned"), "all of these are counted")
    before = {cause: refused(reader, cause) for cause in ("not_for_key", "unsigned", "wrong_signature")}
    intruder.write("hold", intruder.hold(), signed=True)
    for key, value in attacks.items():
        intruder.write(key, value, signed=True)
        intruder.write(key, value, signed=False)
        intruder.write(key, None, signed=True)
    intruder.append(b"3", b"{}", genuine(fleet, 3)[-1].headers())
    eventually(lambda: refused(reader, "not_for_key") == before["not_for_key"] + 6, "they are counted")
    eventually(lambda: refused(reader, "unsigned") == before["unsigned"] + 3, "they are counted")
    eventually(lambda: refused(reader, "wrong_signature") == before["wrong_signature"] + 1, "it is counted")
    for key in attacks:
        sentence = say("refused-not_for_key", key=key)
        reader.await_entry("WARNING", sentence, since=marks[2])
    await_signed(fleet)
    for broker_id, agent in fleet.agents.items():
        told = [sentence for _, sentence in agent.journal(marks[broker_id])]
        assert set(agent.states_told(marks[broker_id])) <= {"OPEN"}, "no order, no report, and no fallback"
        assert not [sentence for sentence in told if "is not known" in sentence or "undetermined" in sentence]
        assert agent.state == agent.applied_state == "OPEN"


def test_a_copy_of_an_old_report_is_refused(fleet: Fleet, signers: Signers) -> None:
    signers.demand("required")
    await_signed(fleet)
    fleet.fill(3, headroom=-0.2)
    fleet.await_enforced("PAUSE")
    reader, marks = fleet.agents[2], fleet.marks()
    before = refused(reader, "replayed")
    relief = next(one for one in genuine(fleet, 3) if not parse_usage(one.value()).votes)
    Intruder(fleet, signers.record_signer("agent/1")).append(b"3", relief.value(), relief.headers())
    eventually(lambda: refused(reader, "replayed") > before, "it is counted")
    # It is logged once, until no record of this key has been refused for that reason for a while.
    cause = "it is a copy of an older record, or its signer's clock is behind the brokers'"
    reader.await_entry("WARNING", f"the record of key 3 is refused: {cause}")
    time.sleep(1)
    assert set(reader.states_told(marks[2])) <= {"PAUSE"}


def test_orders_need_an_operator_s_certificate(fleet: Fleet, signers: Signers) -> None:
    signers.demand("required")
    await_signed(fleet)
    agent = fleet.agents[1]
    done = agent.cli("hold", "pause", "--for", "10m", "--reason", "a test")
    assert done.returncode == 1
    assert "names no kquota:// URI, which gives no orders" in done.stderr
    assert "/operator/<name>" in done.stderr

    good, marks = agent.operator, fleet.marks()
    try:
        for name in ("agent/1", "operator/jane"):
            files = signers.settings(name, "required")
            text = good.read_text("utf-8")
            text += f"kquota.signing.certificate={files['certificate_file']}\n"
            text += f"kquota.signing.key={files['key_file']}\n"
            agent.operator = agent.directory / f"{name.replace('/', '-')}.properties"
            agent.operator.touch(mode=0o600)
            agent.operator.write_text(text)
            if name == "agent/1":
                assert agent.cli("maintenance", "--for", "1m").returncode == 1
        agent.order("hold", "pause", "--for", "10m", "--reason", "a test", "--actor", "another name")
        fleet.await_enforced("PAUSE")
        assert {other.decision["hold"]["actor"] for other in fleet.of()} == {"jane"}
        words = "by jane, typed as another name (a test)"
        eventually(lambda: fleet.agents[2].told(words, since=marks[2]), "it is logged")
        agent.order("hold", "release")
        fleet.await_enforced("OPEN")
        words = "the hold was released by jane, typed as"
        eventually(lambda: fleet.agents[2].told(words, since=marks[2]), "it is logged")
    finally:
        agent.operator = good


@pytest.mark.parametrize("memory", ["kept", "lost"])
def test_an_agent_that_starts_again_signs_on_above_its_former_counters(
    fleet: Fleet, signers: Signers, memory: str
) -> None:
    signers.demand("required")
    await_signed(fleet)
    agent, marks = fleet.agents[3], fleet.marks()
    agent.stop()
    if memory == "lost":
        (agent.state_dir / "state.json").unlink()
    heard = len(fleet.usage_of(3))
    agent.start()
    eventually(lambda: len(fleet.usage_of(3)) > heard + 2, "it reports again")
    await_signed(fleet)
    for broker_id, other in fleet.agents.items():
        assert set(other.states_told(marks[broker_id])) <= {"OPEN"}
        refused = other.told("the record of key 3 is refused", since=marks[broker_id])
        # Refusals of the tests before may end now.
        assert [sentence for _, sentence in refused if not sentence.startswith("over: ")] == []


def test_a_certificate_of_another_broker_is_refused_before_the_agent_uses_it(
    fleet: Fleet, signers: Signers
) -> None:
    agent = fleet.agents[1]
    good = dict(agent.settings)
    agent.write_config(signing=signers.settings("agent/2", "accept"))
    done = agent.cli("config", "check")
    assert done.returncode == 78
    assert "signing.certificate_file names" in done.stderr
    assert "kquota://*/agent/1" in done.stderr
    agent.settings = good
    agent.write_config()
