"""Random faults for as long as one likes, and whether anything leaks meanwhile."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median

import psutil

from tests.integration.spine.fleet import Fleet
from tests.integration.waiting import eventually

# Memory of a JVM and of an interpreter settles slowly; descriptors and threads do not grow at all.
_MEMORY_GROWTH_RATIO, _MEMORY_SLACK_BYTES = 1.25, 32 * 2**20
_COUNT_SLACK = 8
_KILLED = 3  # the only agent that is killed: a new process would hide what the old one leaked


class Leaked(AssertionError):
    """Something grew; the text names it and its process."""


@dataclass(frozen=True)
class Sample:
    """One process at one moment."""

    memory_bytes: int
    descriptors: int
    threads: int

    @staticmethod
    def of(pid: int) -> Sample:
        process = psutil.Process(pid)
        return Sample(process.memory_info().rss, process.num_fds(), process.num_threads())


@dataclass
class Campaign:
    """A fleet at OPEN, and the faults that are injected. ``say`` gets a line for each fault."""

    fleet: Fleet
    seed: int
    say: Callable[[str], None] = print
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    faults: int = 0

    def run(self, seconds: float) -> None:
        """Inject faults until the time is over, then compare the processes with how they began.

        Raises:
            AssertionError: a breach was missed, a PAUSE had no reason or did not end, or something leaked.
        """
        lots, deadline = random.Random(self.seed), time.monotonic() + seconds
        self._sample()
        while time.monotonic() < deadline:
            name, inject = lots.choice(list(self._kinds()))
            broker_id = lots.choice(sorted(self.fleet.agents))
            begun = time.monotonic()
            inject(broker_id)
            self.fleet.clear()
            self.fleet.await_enforced("OPEN", timeout_seconds=120)
            self.faults += 1
            self.say(f"{self.faults}: {name} at broker {broker_id}: {time.monotonic() - begun:.1f} s")
            self._sample()
        self._judge()

    def _kinds(self) -> Iterator[tuple[str, Callable[[int], None]]]:
        yield "a disk is full", self._full
        yield "a disk is over its soft limit", self._soft
        yield "the agent is killed", self._killed
        yield "the agent is stopped for a while", self._stopped
        yield "the agent reloads", self._reloaded
        yield "a garbled report", self._garbled
        yield "the report is deleted", self._deleted
        yield "an operator holds the cluster", self._held

    def _full(self, broker_id: int) -> None:
        self.fleet.fill(broker_id, -0.02)
        self.fleet.await_enforced("PAUSE", timeout_seconds=120)

    def _soft(self, broker_id: int) -> None:
        self.fleet.fill(broker_id, 0.5)
        self.fleet.await_enforced("THROTTLE", timeout_seconds=120)

    def _killed(self, _broker_id: int) -> None:
        with self._no_pause():
            agent = self.fleet.agents[_KILLED]
            agent.kill()
            agent.start()
            decided = (agent.decision or {}).get("decided_at")
            eventually(
                lambda: (agent.decision or {}).get("decided_at") != decided, f"{agent} decides again", 120
            )

    def _stopped(self, broker_id: int) -> None:
        with self._no_pause():
            process = self.fleet.agents[broker_id].process
            process.send(signal.SIGSTOP)
            time.sleep(4.0)  # well within lease and staleness
            process.send(signal.SIGCONT)

    def _reloaded(self, broker_id: int) -> None:
        with self._no_pause():
            self.fleet.agents[broker_id].reload()

    def _garbled(self, broker_id: int) -> None:
        with self._no_pause():
            self.fleet.put(str(broker_id), b'{"SnapshotAt": "now", "Volumes": [')
            time.sleep(1.0)  # long enough for every agent to have read it

    def _deleted(self, broker_id: int) -> None:
        last = self.fleet.usage_of(broker_id)[-1:]
        self.fleet.put(str(broker_id), None)
        eventually(lambda: self.fleet.usage_of(broker_id)[-1:] != last, "it reports again", 120)

    def _held(self, broker_id: int) -> None:
        agent = self.fleet.agents[broker_id]
        agent.order("hold", "pause", "--for", "10m", "--reason", "soak")
        self.fleet.await_enforced("PAUSE", timeout_seconds=120)
        agent.order("hold", "release")

    def _no_pause(self) -> _NoPause:
        return _NoPause(self.fleet)

    def _sample(self) -> None:
        for broker_id, agent in self.fleet.agents.items():
            if broker_id != _KILLED:
                self.samples.setdefault(f"agent {broker_id}", []).append(Sample.of(agent.process.pid))
            node = self.fleet.cluster.nodes[broker_id]
            self.samples.setdefault(f"broker {broker_id}", []).append(Sample.of(node.pid))

    def _judge(self) -> None:
        for name, samples in self.samples.items():
            third = max(1, len(samples) // 3)
            # the first third warms caches and the compiler up: a leak continues afterwards
            middle, last = samples[third : 2 * third] or samples[:third], samples[-third:]
            before, after = (median(s.memory_bytes for s in part) for part in (middle, last))
            if after > before * _MEMORY_GROWTH_RATIO + _MEMORY_SLACK_BYTES:
                raise Leaked(f"{name}: memory went from {before / 2**20:.0f} to {after / 2**20:.0f} MiB")
            for what in ("descriptors", "threads"):
                before, after = (median(getattr(s, what) for s in part) for part in (middle, last))
                if after > before + _COUNT_SLACK:
                    raise Leaked(f"{name}: {what} went from {before:g} to {after:g}")
            first = samples[0]
            self.say(
                f"{name}: {first.memory_bytes / 2**20:.0f} → {samples[-1].memory_bytes / 2**20:.0f} MiB,"
                f" {first.descriptors} → {samples[-1].descriptors} descriptors,"
                f" {first.threads} → {samples[-1].threads} threads"
            )


class _NoPause:
    """Within it no agent may report a PAUSE: nothing gives reason for one."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._marks = fleet.marks()

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, *_error: object) -> None:
        if kind is None:
            for broker_id, agent in self._fleet.agents.items():
                states = agent.states_told(since=self._marks[broker_id])
                assert "PAUSE" not in states, f"{agent} told {states}\n{agent.log_tail()}"
