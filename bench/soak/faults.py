"""The faults that the soak injects, each of which the cluster survives without anybody's help."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from kquota.policy.decision import State
from testbed.demo.loopback_stage import LoopbackStage, agent_yml
from testbed.loopback.plug_in import OPERATOR, write_operator_properties

VICTIM = 3
"""The only broker whose processes are killed: a new one would hide what the old one leaked."""
_STOPPED_SECONDS = 4.0
_GARBLED = b'{"SnapshotAt": "now", "Volumes": ['
_ORDER_SECONDS = 60.0


class OrderFailed(Exception):
    """An operator's command failed; the message has its output."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind. `inject` returns when it is over, or when `leads_to` is to be expected; `undo` ends that."""

    name: str
    inject: Callable[[LoopbackStage, int], None]
    may_pause: bool = False
    """Whether a PAUSE is right while it lasts, although no volume calls for it."""
    leads_to: State | None = None
    undo: Callable[[LoopbackStage, int], None] = lambda _stage, _broker: None

    def allows(self, decided: State, called_for: State) -> bool:
        """Whether a decision is right during the fault, in the state that the volumes call for."""
        return decided is called_for or (self.may_pause and decided is State.PAUSE)


def _kill_agent(stage: LoopbackStage, _broker: int) -> None:
    stage.agents[VICTIM].kill()
    stage.restart_agent(VICTIM)


def _restart_agent(stage: LoopbackStage, _broker: int) -> None:
    stage.agents[VICTIM].terminate(_ORDER_SECONDS)
    stage.restart_agent(VICTIM)


def _stop_agent_for_a_while(stage: LoopbackStage, broker: int) -> None:
    agent = stage.agents[broker]
    agent.send(signal.SIGSTOP)
    time.sleep(_STOPPED_SECONDS)
    agent.send(signal.SIGCONT)


def _reload_agent(stage: LoopbackStage, broker: int) -> None:
    stage.agents[broker].send(signal.SIGHUP)


def _kill_broker(stage: LoopbackStage, _broker: int) -> None:
    stage.cluster.nodes[VICTIM].kill()
    stage.cluster.restart(VICTIM, timeout_seconds=300)


def _restart_broker(stage: LoopbackStage, _broker: int) -> None:
    stage.cluster.nodes[VICTIM].stop()
    stage.cluster.restart(VICTIM, timeout_seconds=300)


def _garble(stage: LoopbackStage, broker: int) -> None:
    stage.write_report(broker, _GARBLED)


def _delete_report(stage: LoopbackStage, broker: int) -> None:
    stage.write_report(broker, None)


def _hold(stage: LoopbackStage, broker: int) -> None:
    _order(stage, broker, "hold", "pause", "--for", "10m", "--reason", "soak")


def _release(stage: LoopbackStage, broker: int) -> None:
    _order(stage, broker, "hold", "release")


FAULTS = (
    Fault("an agent is killed", _kill_agent),
    Fault("an agent is restarted", _restart_agent),
    Fault("an agent is stopped for 4 s", _stop_agent_for_a_while),
    Fault("an agent reads its configuration again", _reload_agent),
    Fault("a broker is killed", _kill_broker),
    Fault("a broker is restarted", _restart_broker),
    Fault("a report is garbled", _garble),
    Fault("a report is deleted", _delete_report, may_pause=True),
    Fault("an operator holds the cluster", _hold, may_pause=True, leads_to=State.PAUSE, undo=_release),
)


def _order(stage: LoopbackStage, broker: int, *arguments: str) -> None:
    configuration = agent_yml(stage.cluster, broker)
    operator = write_operator_properties(
        configuration.with_name("operator.properties"), stage.cluster.client_configuration(OPERATOR)
    )
    command = [sys.executable, "-m", "kquota", *arguments]
    command += ["--config", str(configuration), "--command-config", str(operator)]
    done = subprocess.run(
        command,
        env=stage.cluster.environment(),
        capture_output=True,
        text=True,
        timeout=_ORDER_SECONDS,
        check=False,
    )
    if done.returncode:
        raise OrderFailed(f"kquota {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
