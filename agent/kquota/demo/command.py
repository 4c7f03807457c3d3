"""`kquota demo` and `kquota playground`; and what a demonstration elsewhere has in common with them."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console

from kquota.core.decision import State
from kquota.demo.callback_jar import CallbackJarMissing, find_callback_jar
from kquota.demo.node import NodeFailed
from kquota.demo.place import Place
from kquota.demo.plan import Plan
from kquota.demo.playground import DirectoryTaken, Playground, playground_plan, require_own_directory
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
Errors = tuple[type[Exception], ...]
_UNAVAILABLE: Errors = (RuntimeUnavailable, VolumeUnavailable, CallbackJarMissing, DirectoryTaken)
_FAILURES: Errors = (NodeFailed, AgentFailed, WorkspaceNotCleared)


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
    plan = plan if plan is not None else Plan()
    if pause_seconds is not None:
        plan = replace(plan, pause_seconds=pause_seconds)
    return perform(lambda console: _play(console, plan, unprotected=unprotected, keep=keep), "kquota demo")


def run_playground(directory: Path) -> int:
    """Run a cluster to play with until it is interrupted; returns 130 then, 2 where it can't run here."""
    return perform(lambda console: _stay(console, directory), "kquota playground")


def perform(
    act: Callable[[Console], int],
    command: str,
    *,
    unavailable: Errors = (),
    failures: Errors = (),
) -> int:
    """Do it, and say in one line what stopped it; returns its exit code, or 2, 1 or 130 as `run` does.

    `unavailable` and `failures` are errors for 2 and for 1 besides those of a loopback cluster.
    """
    console = Console(highlight=False, markup=False)
    previous = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        return act(console)
    except KeyboardInterrupt:
        console.print("interrupted")
        return 128 + signal.SIGINT
    except _UNAVAILABLE + unavailable as error:
        print(f"{command}: {error}", file=sys.stderr)
        return CANNOT_RUN
    except _FAILURES + failures as error:
        print(f"{command}: {error}", file=sys.stderr)
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
        code = play_at(stage, title, console)
        if keep:
            console.print(f"logs and disk images stay in {stage.cluster.path}")
        return code


def play_at(place: Place, title: str, console: Console) -> int:
    """Play there, and print the verdict; returns 0 or 1 as `run` does."""
    tally = Tally()
    brokers = place.cluster.brokers
    with (
        Screen(console, title, protected=place.protected) as screen,
        Lookout(brokers, place.plan.limits, place.files, tally.notice) as lookout,
        Scenario(place, lookout, tally, screen) as scenario,
    ):
        outcome = scenario.play()
    console.print()
    if not place.protected:
        console.print(unprotected_verdict(tally, outcome, len(brokers)))
        return KEPT if ran_full(outcome) else BROKEN
    promises = protected_promises(tally, outcome, len(brokers))
    console.print(protected_verdict(tally, outcome, promises))
    return KEPT if outcome.stuck is None and all(promise.kept for promise in promises) else BROKEN


def _stay(console: Console, directory: Path) -> NoReturn:
    require_own_directory(directory)
    require_loop_volumes()
    callback_jar = find_callback_jar()
    runtime = ensure_kafka_runtime(report=console.print)
    report = partial(console.print, soft_wrap=True)
    with (
        Stage(playground_plan(), runtime, callback_jar=callback_jar, keep=False, report=report) as stage,
        Playground(directory, stage, runtime) as playground,
    ):
        lookout = Lookout(stage.cluster.brokers, stage.plan.limits, stage.files, lambda _sight: None)
        report("waiting until every broker's plug-in follows its agent")
        while not lookout.look().all_enforce(State.OPEN):
            stage.check_agents()
            time.sleep(0.2)
        playground.stay(report)
    raise AssertionError("a playground ends only by an interruption")


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
