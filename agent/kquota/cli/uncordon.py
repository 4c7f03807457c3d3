"""``kquota uncordon``: end the cordons that the agent has set, when it goes."""

from __future__ import annotations

from dataclasses import replace

import typer

from kquota.cli.configuration import DEFAULT_CONFIG, ConfigOption, broker_id_of, settings_of
from kquota.cli.output import fail
from kquota.guard.agent_state import FILE_NAME, AgentStateFile
from kquota.kafka.admin import AdminConnection
from kquota.kafka.config import ClientProperties, ConfigurationError
from kquota.kafka.errors import KafkaFailure
from kquota.policy.cordon import SETTING, change


def uncordon(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Let Kafka place partitions again in the log dirs that this host's agent has cordoned.

    For the removal of an agent that has stopped. A running one would cordon them again: set cordon: off in
    agent.yml and reload it instead. Cordons of operators stay. Run it as the agent's user, or as root.
    """
    settings = settings_of(config)
    broker_id = broker_id_of(settings)
    file = AgentStateFile(settings.state_dir / FILE_NAME)
    state, problem = file.load()
    if problem is not None:
        fail(problem)
    if not state.cordoned_log_dirs:
        typer.echo(f"the agent of broker {broker_id} has cordoned no log dir")
        return
    try:
        admin = AdminConnection(ClientProperties(settings.librdkafka(), broker_id))
    except ConfigurationError as error:
        fail(str(error))
    try:
        _end(admin, broker_id, frozenset(state.cordoned_log_dirs))
    finally:
        admin.close()
    try:
        file.save(replace(state, cordoned_log_dirs=()))
    except OSError as error:
        fail(f"the state file {file.path} can't be written: {error}")
    for log_dir in state.cordoned_log_dirs:
        typer.echo(f"Kafka may place new partitions in {log_dir} again")


def _end(admin: AdminConnection, broker_id: int, ours: frozenset[str]) -> None:
    found = admin.broker_settings(broker_id).result()
    if isinstance(found, KafkaFailure):
        fail(found.sentence)
    present = [one for one in found.get(SETTING, "").split(",") if one]
    new = change(present, ours, frozenset())
    if new is not None and tuple(present) != new.value:
        failure = admin.set_broker_setting(broker_id, SETTING, ",".join(new.value) or None).result()
        if isinstance(failure, KafkaFailure):
            fail(failure.sentence)
