"""`kquota demo`."""

from __future__ import annotations

import signal
import sys
from dataclasses import replace
from types import FrameType
from typing import NoReturn

from rich.console import Console

from kquota.demo.callback_jar import CallbackJarMissing, find_callback_jar
from kquota.demo.node import NodeFailed
from kquota.demo.plan import Plan
from kquota.demo.runtime import RuntimeUnavailable, ensure_kafka_runtime
from kquota.demo.scenario import Scenario
from kquota.demo.screen import Screen
from kquota.demo.sight import Lookout
from kquota.demo.stage import AgentFailed, Stage
from kquota.demo.tally import Tally
from kquota.demo.verdict import protected_promises, protected_verdict, ran_full, unprotected_verdict
from kquota.demo.volumes import VolumeUnavailable, require_loop_volumes
from kquota.demo.workspace import WorkspaceNotCleared

KEPT, BROKEN, CANNOT_RUN = 0, 1, 2


def run(
    *,
    unprotected: bool = False,
    keep: bool = False,
    pause_seconds: float | None = None,
    plan: Plan | None = None,
) -> int:
    """Play the demo; returns the exit code: 0 promise kept, 1 not kept, 2 it can't run here, 130 interrupted.

    With `unprotected` the same load runs without kquota, and 0 means that the disks ran full, as was to be
    shown. `keep` leaves logs and disk images behind; processes, mounts and loop devices always go.
    """
    console = Console(highlight=False, markup=False)
    plan = plan if plan is not None else Plan()
    if pause_seconds is not None:
        plan = replace(plan, pause_seconds=pause_seconds)
    previous = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        return _play(console, plan, unprotected=unprotected, keep=keep)
    except KeyboardInterrupt:
        console.print("interrupted")
        return 128 + signal.SIGINT
    except (RuntimeUnavailable, VolumeUnavailable, CallbackJarMissing) as error:
        print(f"kquota demo: {error}", file=sys.stderr)
        return CANNOT_RUN
    except (NodeFailed, AgentFailed, WorkspaceNotCleared) as error:
        print(f"kquota demo: {error}", file=sys.stderr)
        return BROKEN
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _play(console: Console, plan: Plan, *, unprotected: bool, keep: bool) -> int:
    require_loop_volumes()
    callback_jar = None if unprotected else find_callback_jar()
    runtime = ensure_kafka_runtime(report=console.print)
    stage = Stage(plan, runtime, callback_jar=callback_jar, keep=keep, report=console.print)
    with stage:
        title = f"kquota demo: Kafka {runtime.version}, three brokers, {'un' if unprotected else ''}protected"
        tally = Tally()
        with (
            Screen(console, title, protected=stage.protected) as screen,
            Lookout(stage.cluster.brokers, plan.limits, stage.files, tally.notice) as lookout,
            Scenario(stage, lookout, tally, screen) as scenario,
        ):
            outcome = scenario.play()
        console.print()
        if keep:
            console.print(f"logs and disk images stay in {stage.cluster.path}")
        broker_count = len(stage.cluster.brokers)
        if unprotected:
            console.print(unprotected_verdict(tally, outcome, broker_count))
            return KEPT if ran_full(outcome) else BROKEN
        promises = protected_promises(tally, outcome, broker_count)
        console.print(protected_verdict(tally, outcome, promises))
        return KEPT if outcome.stuck is None and all(promise.kept for promise in promises) else BROKEN


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
