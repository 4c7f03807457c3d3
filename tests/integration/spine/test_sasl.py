"""An agent that logs in with a name and a password, which systemd hands over to it as a credential."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from testbed.loopback.clients import admin_client
from testbed.loopback.runtime import KafkaRuntime
from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.fleet import HISTORY_TOPIC, USAGE_TOPIC, Fleet
from tests.integration.waiting import eventually

USER, CREDENTIAL = "kquota-agent", "kafka-password"
FIRST, SECOND = "correct-horse-battery-staple", "tr0ub4dor-and-three"
_SCRAM = "SCRAM-SHA-512"
_LOGIN_OF_THE_BROKER = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required username=broker password=unused;"
)
PROPERTIES = {
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,INTERNAL:SASL_SSL,CONTROLLER:SSL",
    "listener.name.internal.ssl.client.auth": "none",
    "listener.name.internal.sasl.enabled.mechanisms": _SCRAM,
    "listener.name.internal.scram-sha-512.sasl.jaas.config": _LOGIN_OF_THE_BROKER,
    # It is the only broker: no other broker ever logs in.
    "sasl.mechanism.inter.broker.protocol": _SCRAM,
}


def set_password(admin: AdminClient, password: str) -> None:
    change = UserScramCredentialUpsertion(
        USER, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), password.encode()
    )
    admin.alter_user_scram_credentials([change])[USER].result(30)


def hand_over(agent: AgentProcess, password: str) -> None:
    """Put the password where systemd does, in a directory of the agent's own."""
    directory = Path(agent.environment["CREDENTIALS_DIRECTORY"])
    new = directory.with_name("new-credential")
    new.touch(mode=0o400)
    new.write_text(password)
    new.replace(directory / CREDENTIAL)


@pytest.fixture(scope="module")
def fleet(kafka_runtime: KafkaRuntime, callback_jar: Path) -> Iterator[Fleet]:
    """One broker whose internal listener wants a password; its agent runs and enforces."""
    with Fleet(kafka_runtime, callback_jar, {1: 1}, exempt=[f"User:{USER}"], properties=PROPERTIES) as fleet:
        set_password(admin_client(fleet.cluster.client_configuration()), FIRST)
        agent = fleet.agents[1]
        directory = agent.directory / "credentials"
        directory.mkdir(mode=0o700)
        agent.environment["CREDENTIALS_DIRECTORY"] = str(directory)
        hand_over(agent, FIRST)
        tls = agent.settings["kafka"]
        agent.write_config(
            kafka={
                "bootstrap.servers": tls["bootstrap.servers"],
                "security.protocol": "sasl_ssl",
                "sasl.mechanism": _SCRAM,
                "sasl.username": USER,
                "ssl.ca.location": tls["ssl.ca.location"],
            },
            kafka_secrets={"sasl.password": CREDENTIAL},
            log={"level": "DEBUG"},
        )
        agent.start()
        fleet.await_enforced("OPEN")
        yield fleet


@pytest.mark.long
def test_it_is_the_principal_that_is_never_held_and_holds_the_others(fleet: Fleet) -> None:
    agent = fleet.agents[1]
    assert agent.applied is not None
    seen = {entry["principal"]: entry["client_ids"] for entry in agent.applied["exempt"]}
    assert any(client_id.startswith("kquota-1-") for client_id in seen[f"User:{USER}"])
    fleet.fill(1, headroom=-0.2)
    fleet.await_enforced("PAUSE")
    fleet.clear()
    fleet.await_enforced("OPEN")


@pytest.mark.long
def test_a_refused_login_is_told_and_another_password_is_taken_at_the_next_start(fleet: Fleet) -> None:
    agent = fleet.agents[1]
    agent.stop()
    set_password(admin_client(fleet.cluster.client_configuration()), SECOND)
    mark = agent.journal_mark()
    agent.start()
    (told, *_) = eventually(lambda: agent.told("refused the login", since=mark), "the refusal is logged")
    assert told[0] in ("WARNING", "ERROR")
    assert "credentials of the kafka section" in told[1]
    eventually(lambda: agent.metric("kquota_kafka_errors_total", kind="authentication"), "it is counted")
    agent.stop()
    hand_over(agent, SECOND)
    mark = agent.journal_mark()
    agent.start()
    eventually(lambda: agent.told("started for broker 1", since=mark), "it has started")
    agent.await_metric(1, "kquota_connected")
    fleet.await_enforced("OPEN")


@pytest.mark.long
def test_the_password_is_nowhere_that_others_look(fleet: Fleet) -> None:
    agent = fleet.agents[1]
    processes = [one := psutil.Process(agent.process.pid), *one.children(recursive=True)]
    seen = {f"arguments of {one.pid}": " ".join(one.cmdline()) for one in processes}
    seen |= {f"environment of {one.pid}": "\n".join(one.environ().values()) for one in processes}
    seen["metrics"] = agent.metrics_text()
    for command in (("config", "show"), ("config", "check"), ("status", "--json"), ("explain",)):
        done = agent.cli(*command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        seen[" ".join(command)] = done.stdout + done.stderr
    seen |= agent.files() | {str(agent.config): agent.config.read_text("utf-8")}
    assert str(agent.decision_path) in seen
    for topic in (USAGE_TOPIC, HISTORY_TOPIC):
        records = fleet.records(topic, name=None)
        seen[f"records of {topic}"] = "".join(str((m.key(), m.value(), m.headers())) for m in records)
    seen["journal"] = agent.log_path.read_text("utf-8", "replace")
    for where, text in seen.items():
        assert FIRST not in text, where
        assert SECOND not in text, where
    assert len(seen["journal"]) > 1000
