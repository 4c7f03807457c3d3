"""The command line of the demonstration: which stage, with kquota or without, and what stopped it."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

from confluent_kafka import KafkaException
from rich.console import Console

from kquota.policy.decision import State
from testbed.demo.hosts_stage import HostsStage, NotSetUp, SuiteUnsupported, require_what_make_makes
from testbed.demo.loopback_stage import AgentFailed, LoopbackStage
from testbed.demo.place import Place
from testbed.demo.plan import Plan
from testbed.demo.playground import DirectoryTaken, Playground, playground_plan, require_own_directory
from testbed.demo.scenario import Scenario
from testbed.demo.screen import Screen
from testbed.demo.sight import Lookout
from testbed.demo.steps import Steps
from testbed.demo.tally import Tally
from testbed.demo.verdict import protected_promises, protected_verdict, ran_full, unprotected_verdict
from testbed.hosts.commands import CommandFailed
from testbed.hosts.fleet import FleetFailed
from testbed.hosts.host import HostFailed
from testbed.hosts.rollout import PlayFailed
from testbed.loopback.callback_jar import CallbackJarMissing, find_callback_jar
from testbed.loopback.node import NodeFailed
from testbed.loopback.runtime import RuntimeUnavailable, ensure_kafka_runtime
from testbed.loopback.volumes import VolumeUnavailable, require_loop_volumes
from testbed.loopback.workspace import WorkspaceNotCleared

KEPT, BROKEN, CANNOT_RUN = 0, 1, 2
UNAVAILABLE = (
    CallbackJarMissing,
    DirectoryTaken,
    FleetFailed,
    NotSetUp,
    RuntimeUnavailable,
    SuiteUnsupported,
    VolumeUnavailable,
)
FAILURES = (
    AgentFailed,
    CommandFailed,
    HostFailed,
    KafkaException,
    NodeFailed,
    PlayFailed,
    WorkspaceNotCleared,
)


def main(arguments: list[str] | None = None) -> int:
    """Run; return 0 promise kept, 1 not kept, 2 the demonstration can't run here, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="python -m testbed.demo", description=__doc__)
    parser.add_argument("--loopback", action="store_true", help="three brokers on loopback, without hosts")
    parser.add_argument("--unprotected", action="store_true", help="the same load without kquota")
    parser.add_argument(
        "--keep", action="store_true", help="fill no disk: keep a protected cluster on loopback until Ctrl-C"
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path("build/playground"),
        help="with --keep: where to put the agents' configurations and Kafka's tools (build/playground)",
    )
    chosen = parser.parse_args(arguments)
    if chosen.keep:
        return perform(partial(keep, directory=chosen.directory))
    act = on_loopback if chosen.loopback else on_hosts
    return perform(partial(act, plan=Plan(), protected=not chosen.unprotected))


def perform(act: Callable[[Console], int]) -> int:
    """Do it, and report in one line what stopped it; return its exit code, or 2, 1 or 130 as `main` does."""
    console = Console(highlight=False, markup=False)
    previous = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        return act(console)
    except KeyboardInterrupt:
        console.print("interrupted")
        return 128 + signal.SIGINT
    except UNAVAILABLE as error:
        print(f"demo: {error}", file=sys.stderr)
        return CANNOT_RUN
    except FAILURES as error:
        print(f"demo: {error}", file=sys.stderr)
        return BROKEN
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def on_loopback(console: Console, plan: Plan, *, protected: bool) -> int:
    """Play on three brokers and agents that are processes of this machine; return the exit code."""
    require_loop_volumes()
    callback_jar = find_callback_jar() if protected else None
    runtime = ensure_kafka_runtime(report=console.print)
    with LoopbackStage(plan, runtime, callback_jar=callback_jar, report=console.print) as stage:
        return play_at(stage, f"Kafka {runtime.version}, three brokers", console)


def on_hosts(console: Console, plan: Plan, *, protected: bool) -> int:
    """Boot three hosts, roll kquota out on them, and play there; return the exit code."""
    require_loop_volumes()
    require_what_make_makes(protected=protected)
    steps = Steps(console)
    with steps.step("Apache Kafka's jars") as step:
        runtime = ensure_kafka_runtime(report=step.part)
    with HostsStage(plan, runtime, steps, protected=protected) as stage:
        steps.end()
        look = f".venv/bin/python -m testbed.hosts exec {stage.cluster.fleet.name} broker-1 --"
        console.print(f"to look at a host meanwhile: {look} systemctl status kafka", soft_wrap=True)
        return play_at(stage, f"Kafka {runtime.version}, three hosts", console)


def play_at(place: Place, where: str, console: Console) -> int:
    """Play there, and print the verdict; return 0 or 1 as `main` does."""
    tally = Tally()
    brokers = place.cluster.brokers
    title = f"kquota demo: {where}, {'' if place.protected else 'un'}protected"
    with (
        Screen(console, title, place.plan.topics, protected=place.protected) as screen,
        Lookout(brokers, place.plan.limits, place.files, tally.notice) as lookout,
        Scenario(place, lookout, tally, screen) as scenario,
    ):
        outcome = scenario.play()
    console.print()
    if not place.protected:
        console.print(unprotected_verdict(tally, outcome, len(brokers)))
        return KEPT if ran_full(outcome) else BROKEN
    promises = protected_promises(tally, outcome, len(brokers), place.plan.topics)
    console.print(protected_verdict(tally, outcome, promises))
    return KEPT if outcome.stuck is None and all(promise.kept for promise in promises) else BROKEN


def keep(console: Console, directory: Path) -> NoReturn:
    """Keep a protected cluster on loopback until an interruption; `directory` leads others to it."""
    require_own_directory(directory)
    require_loop_volumes()
    callback_jar = find_callback_jar()
    runtime = ensure_kafka_runtime(report=console.print)
    report = partial(console.print, soft_wrap=True)
    with (
        LoopbackStage(playground_plan(), runtime, callback_jar=callback_jar, report=report) as stage,
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
