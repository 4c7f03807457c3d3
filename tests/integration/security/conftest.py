"""A fleet of which an attacker has the key of one agent, with TLS and the permissions that the roles give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.loopback.certificates import principal_of
from testbed.loopback.clients import admin_client
from testbed.loopback.plug_in import OPERATOR, agent_name, principals_of
from testbed.loopback.runtime import KafkaRuntime
from tests.integration.security.attackers import ADMINISTRATOR, GRANTED, PARTITIONS, STRANGER, Armoury
from tests.integration.security.permissions import grant_as_the_role_does, grant_by_mistake
from tests.integration.security.stages import Stages
from tests.integration.spine.conftest import pytest_runtest_makereport  # noqa: F401 - the journals of a failure
from tests.integration.spine.fleet import QUICK, USAGE_TOPIC, Fleet

_BROKERS = (1, 2, 3)
_SETTINGS = {
    **QUICK,
    "topics": {"usage": {"partitions": PARTITIONS[USAGE_TOPIC]}},
    "staleness_seconds": 180,  # what a busy machine makes stale is no attack's success
}
_CLIENTS = [principal_of(name) for name in (ADMINISTRATOR, STRANGER, GRANTED)]


@pytest.fixture(scope="session")
def attacked_fleet(kafka_runtime: KafkaRuntime, callback_jar: Path) -> Iterator[Fleet]:
    """Three brokers with their agents."""
    with Fleet(
        kafka_runtime,
        callback_jar,
        dict.fromkeys(_BROKERS, 1),
        settings=_SETTINGS,
        exempt=[*principals_of(_BROKERS), *_CLIENTS],
        super_users=[principal_of(ADMINISTRATOR)],
        properties={"log.cleaner.backoff.ms": "500"},
        partitions=PARTITIONS[USAGE_TOPIC],
        controllers=[2],
    ) as fleet:
        admin = admin_client(fleet.cluster.client_configuration(ADMINISTRATOR))
        agents = [principal_of(agent_name(broker_id)) for broker_id in _BROKERS]
        grant_as_the_role_does(admin, agents, [principal_of(OPERATOR)])
        grant_by_mistake(admin, principal_of(GRANTED))
        yield fleet


@pytest.fixture(scope="session")
def stages(attacked_fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Stages:
    """The stages of all attacks."""
    return Stages(attacked_fleet, Armoury(attacked_fleet, tmp_path_factory.mktemp("armoury")))
