"""The soak: limits are crossed and faults injected by lot while producers with books write."""

from __future__ import annotations

import os
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from bench.bounds import held_bound_bytes
from bench.ledger.producers import RECORD_BYTES
from bench.overshoot import VolumeWatch, fastest_fill
from bench.reaction import AppliedStates
from bench.soak.faults import FAULTS, VICTIM, Fault
from bench.soak.figures import Crossed, Injected, Soaked
from bench.soak.growth import Growth, Sample, growth
from bench.soak.load import Flood, Ledgers
from kquota.policy.decision import State
from kquota.policy.limits import Limit, LimitPair, LimitType
from testbed.demo.loopback_stage import BROKER_IDS, LoopbackStage, agent_yml
from testbed.demo.plan import Plan
from testbed.loopback.callback_jar import find_callback_jar
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB, LoopVolume, VolumeSpec

_VOLUME = VolumeSpec(8192 * MIB)  # sparse: it takes only the written space
_LIMITS = LimitPair(
    soft=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 40), hard=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 20)
)
_FREE_RATIOS = {State.THROTTLE: 0.3, State.PAUSE: 0.18}
_ROUND_SECONDS = 600.0
_STATE_SECONDS = 2.0, 8.0
_RATE_SECONDS = 2.0
_WINDOW_SECONDS = 11.0
_DECISION_SECONDS = 60.0
_REQUEST_BYTES = 131_072
_CHANGE = re.compile(r"^\S+Z [A-Z]+ (OPEN|THROTTLE|PAUSE)\b.*: .*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class SoakPlan(Plan):
    """Brokers as in production, apart from how soon they delete."""

    @property
    def broker_properties(self) -> dict[str, str]:
        """Old segments and deleted topics go at once: the volumes are small."""
        return {
            "log.retention.check.interval.ms": "5000",
            "log.segment.delete.delay.ms": "0",
            "auto.create.topics.enable": "false",
        }


def soak(runtime: KafkaRuntime, minutes: float, seed: int, report: Callable[[str], None]) -> list[object]:
    """Run the campaign.

    Raises:
        Exception: a state was not reached, or a process ended; after this there is no going on.
    """
    plan = SoakPlan(volumes=dict.fromkeys(BROKER_IDS, (_VOLUME,)), limits=_LIMITS)
    with LoopbackStage(plan, runtime, callback_jar=find_callback_jar(), report=report) as stage:
        return Campaign(stage, seed, report).run(60 * minutes)


class Campaign:
    """A cluster at OPEN, and what happens to it."""

    def __init__(self, stage: LoopbackStage, seed: int, report: Callable[[str], None]) -> None:
        self._stage, self._seed, self._report = stage, seed, report
        self._lots = random.Random(seed)
        self._states = AppliedStates(stage.files)
        self._samples: defaultdict[str, list[Sample]] = defaultdict(list)
        self._crossed: defaultdict[State, list[tuple[float, int, float]]] = defaultdict(list)
        self._injected: dict[str, tuple[Counter[str], list[float]]] = {
            one.name: (Counter(), []) for one in FAULTS
        }
        self._not_kept: list[str] = []
        self._connections: list[int] = []

    def run(self, seconds: float) -> list[object]:
        """Inject faults until the time is over; the figures."""
        began_at, used_before = time.monotonic(), _processor_seconds()
        self._states.wait_for(State.OPEN)
        ledgers = Ledgers(self._stage, self._report)
        rounds = topics = 0
        with Flood(self._stage) as flood:
            while (left_seconds := began_at + seconds - time.monotonic()) > 0:
                self._report(f"round {rounds + 1}; {left_seconds / 60:.0f} minutes left")
                ledgers.begin(rounds)
                topics = ledgers.topics + flood.topics
                round_ends_at = time.monotonic() + min(_ROUND_SECONDS, left_seconds)
                while time.monotonic() < round_ends_at:
                    self._step()
                ledgers.end()
                rounds += 1
        passed_seconds = time.monotonic() - began_at
        audited = ledgers.audited()
        soaked = Soaked(
            self._seed,
            passed_seconds / 60,
            rounds,
            topics,
            min(self._connections),
            flood.landed_bytes + sum(one.account.landed for one in audited) * RECORD_BYTES,
            (_processor_seconds() - used_before) / passed_seconds / (os.cpu_count() or 1),
            tuple(self._not_kept),
            flood.failed_records,
            round(median(self._connections)),
        )
        return [soaked, *self._figures(), *audited]

    def _step(self) -> None:
        """Bring the cluster to a state, inject a fault, and bring it back."""
        state, fault = self._lots.choice(list(State)), self._lots.choice(FAULTS)
        broker, place = self._lots.choice(BROKER_IDS), self._lots.choice(BROKER_IDS)
        volume = self._stage.cluster.nodes[place].volumes[0]
        with VolumeWatch(volume) as watch:
            time.sleep(_RATE_SECONDS)
            fill_rate = fastest_fill(watch.samples, time.monotonic())
            consumed_bytes, reaction_seconds, crossed_at = self._cross(volume, state)
            time.sleep(self._lots.uniform(*_STATE_SECONDS))
            normal_seconds = self._inject(fault, broker, state)
            ended_at = time.monotonic()
        if state is not State.OPEN:
            past_bytes = max(bytes_ for at, bytes_ in watch.samples if at >= crossed_at) - consumed_bytes
            bound_bytes = self._bound(fill_rate, reaction_seconds)
            self._crossed[state].append((reaction_seconds, past_bytes, bound_bytes))
            (volume.mount_point / "ballast").unlink()
        self._states.wait_for(State.OPEN)
        self._stage.check_agents()
        self._sample()
        counts, seconds = self._injected[fault.name]
        counts[state.value] += 1
        seconds.append(normal_seconds)
        self._report(
            f"{len(self._connections)}: {state.value} by broker {place}: {fault.name} ({broker}):"
            f" {normal_seconds:.1f} s; {ended_at - crossed_at:.0f} s in all"
        )

    def _cross(self, volume: LoopVolume, state: State) -> tuple[int, float, float]:
        """The bytes on the volume at the crossing, the seconds until all enforce it, and its moment."""
        if state is not State.OPEN:
            volume.fill(int(_FREE_RATIOS[state] * volume.capacity_bytes()))
        consumed_bytes, crossed_at = volume.consumed_bytes(), time.monotonic()
        return consumed_bytes, self._states.wait_for(state) - crossed_at, crossed_at

    def _inject(self, fault: Fault, broker: int, state: State) -> float:
        """How long until all brokers enforced the state again."""
        marks = {number: self._log(number).stat().st_size for number in BROKER_IDS}
        began_at = time.monotonic()
        fault.inject(self._stage, broker)
        if fault.leads_to is not None:
            self._states.wait_for(fault.leads_to)
        fault.undo(self._stage, broker)
        self._states.wait_for(state)
        self._await_decisions(time.time())
        normal_seconds = self._states.wait_for(state) - began_at
        for number, mark in marks.items():
            told = _CHANGE.findall(self._log(number).read_bytes()[mark:].decode())
            self._not_kept += [
                f"{fault.name} in {state.value}: agent {number} decided {other}"
                for other in sorted(set(told))
                if not fault.allows(State(other), state)
            ]
        return normal_seconds

    def _await_decisions(self, since: float) -> None:
        """Wait until every agent has written a decision after that moment (seconds since 1970)."""
        files = [one.decision for one in self._stage.files.values()]
        deadline = time.monotonic() + _DECISION_SECONDS
        while late := [path for path in files if path.stat().st_mtime < since]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not written again within {_DECISION_SECONDS:g} s: {late}")
            time.sleep(0.05)

    def _log(self, broker_id: int) -> Path:
        return agent_yml(self._stage.cluster, broker_id).with_name("agent.log")

    def _sample(self) -> None:
        connections = 0
        for number in BROKER_IDS:
            node = self._stage.cluster.nodes[number]
            connected = psutil.Process(node.pid).net_connections("tcp")
            connections += sum(
                one.status == psutil.CONN_ESTABLISHED and one.laddr.port == node.ports.clients
                for one in connected
            )
            if number != VICTIM:
                self._samples[f"agent {number}"].append(Sample.of(self._stage.agents[number].pid))
                self._samples[f"broker {number}"].append(Sample.of(node.pid))
        self._connections.append(connections)

    def _bound(self, fill_rate: float, reaction_seconds: float) -> float:
        requests_bytes = max(self._connections, default=0) * _REQUEST_BYTES
        return held_bound_bytes(fill_rate, reaction_seconds, _WINDOW_SECONDS, requests_bytes)

    def _figures(self) -> list[Growth | Crossed | Injected]:
        crossed = []
        for state, found in self._crossed.items():
            pauses = found if state is State.PAUSE else []
            crossed.append(
                Crossed(
                    state.value,
                    tuple(reaction for reaction, _, _ in found),
                    tuple(past for _, past, _ in pauses),
                    tuple(bound for _, _, bound in pauses),
                )
            )
        injected = [
            Injected(name, dict(counts), tuple(seconds)) for name, (counts, seconds) in self._injected.items()
        ]
        return [*crossed, *injected, *(growth(name, samples) for name, samples in self._samples.items())]


def _processor_seconds() -> float:
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)
