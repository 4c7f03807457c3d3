"""One run: producers of every kind through two cycles OPEN → THROTTLE → PAUSE → OPEN, then the audit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.ledger.audit import Account, audit
from bench.ledger.book import Book
from bench.ledger.faults import FULL_BROKER, PLANS, Cycle, FaultPlan, Place, Scene, all_of, bridged
from bench.ledger.figures import Audited, Trouble
from bench.ledger.producers import KINDS, PARTITIONS, LedgerProducer, compiled
from bench.ledger.reader import read_all
from bench.reaction import AppliedStates
from kquota.policy.decision import Scope, State
from kquota.policy.limits import Limit, LimitPair, LimitType
from testbed.demo.loopback_stage import BROKER_IDS, LoopbackStage
from testbed.demo.plan import Plan
from testbed.loopback.callback_jar import find_callback_jar
from testbed.loopback.clients import admin_client, create_topic
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB, VolumeSpec

_VOLUME = VolumeSpec(1024 * MIB)
_LIMITS = LimitPair(
    soft=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 40), hard=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 20)
)
_FREE_RATIOS = {State.THROTTLE: 0.3, State.PAUSE: 0.18}
_RATE_BYTES = 100_000.0
TOPIC_SETTINGS = {"min.insync.replicas": "2"}
PROOF_RECORDS = 50
"""The acknowledged records of each producer that a run waits for, at its beginning and at its end."""
_PROOF_SECONDS = 90.0
_WORDS = {
    Trouble.BROKERS_KILLED: "killed",
    Trouble.NETWORK: "network",
    Trouble.PARTITION: "partition",
    Trouble.DISK: "disk",
    Trouble.AGENTS: "agents",
}


@dataclass(frozen=True, slots=True)
class Run:
    """One combination to try."""

    fence: bool
    scope: Scope = Scope.VOLUME
    trouble: Trouble = Trouble.NONE
    patience_seconds: float | None = None
    """delivery.timeout.ms of the producers: shorter than a PAUSE, records are given up. None: as usual."""
    state_seconds: float = 8.0
    cycles: int = 2

    @property
    def name(self) -> str:
        """A short one, for `--only`."""
        parts = ["fence" if self.fence else "governor"]
        parts += [self.scope.value] if self.scope is not Scope.VOLUME else []
        parts += [_WORDS[self.trouble]] if self.trouble in _WORDS else []
        parts += ["impatient"] if self.patience_seconds is not None else []
        return "-".join(parts)

    @property
    def faults(self) -> FaultPlan:
        """Those besides the states."""
        return PLANS[self.trouble]

    @property
    def client_settings(self) -> dict[str, str]:
        """Of all producers; the names are those of both clients."""
        settings = dict(self.faults.client_settings)
        if self.patience_seconds is None:
            return settings
        # A request may not take longer than a delivery.
        seconds = {
            "linger.ms": 0.005,
            "delivery.timeout.ms": self.patience_seconds,
            "request.timeout.ms": self.patience_seconds / 2,
        }
        return settings | {name: f"{1000 * value:.0f}" for name, value in seconds.items()}


def keep_books(runtime: KafkaRuntime, run: Run, report: Callable[[str], None]) -> list[Audited]:
    """Take the producers through the states, and compare their books with the log."""
    faults = run.faults
    plan = Plan(
        volumes=dict.fromkeys(BROKER_IDS, (_VOLUME,) * faults.volumes),
        limits=_LIMITS,
        fence=run.fence,
        scope=run.scope,
        agent_settings=faults.agent_settings,
    )
    with (
        LoopbackStage(plan, runtime, callback_jar=find_callback_jar(), report=report) as stage,
        bridged(stage, faults.place) as bridge,
    ):
        states = AppliedStates(stage.files)
        states.wait_for(State.OPEN)
        configuration = stage.cluster.client_configuration()
        admin = admin_client(configuration)
        for kind in KINDS:
            create_topic(admin, kind.topic, replicas(), TOPIC_SETTINGS)
        java = compiled(runtime, stage.cluster.path)
        settings = run.client_settings
        launcher = bridge.launcher if bridge is not None and faults.place is Place.PRODUCERS else ()
        producers = [
            LedgerProducer(kind, stage.cluster, java, _RATE_BYTES, settings, launcher=launcher)
            for kind in KINDS
        ]
        await_records(producers)
        for number in range(run.cycles):
            report(f"cycle {number + 1} of {run.cycles}")
            # The one whose volume fills has no turn.
            turns = [broker for broker in BROKER_IDS if broker != FULL_BROKER]
            _cycle(Scene(stage, bridge, turns[number % len(turns)]), states, run, faults.cycle(number))
        await_records(producers)
        report("reading everything back")
        return [
            Audited(
                producer.kind.client,
                producer.kind.delivery,
                run.fence,
                run.scope.value,
                run.trouble,
                run.patience_seconds,
                account,
                dict(book.errors),
            )
            for producer, book, account in settled(producers, configuration)
        ]


def replicas(partitions: int = PARTITIONS, first: int = 0) -> list[list[int]]:
    """On every broker; leaders in turn, from a place in the list of brokers on."""
    turns = ((first + number) % len(BROKER_IDS) for number in range(partitions))
    return [[*BROKER_IDS[turn:], *BROKER_IDS[:turn]] for turn in turns]


def settled(
    producers: Sequence[LedgerProducer], configuration: Mapping[str, str]
) -> Iterator[tuple[LedgerProducer, Book, Account]]:
    """Stop the producers together, then compare the book of each with its topic."""
    for producer in producers:
        producer.ask_to_stop()
    for producer in producers:
        book = producer.stopped()
        yield producer, book, audit(producer.topic, book, read_all(configuration, producer.topic, PARTITIONS))


def await_records(producers: Iterable[LedgerProducer]) -> None:
    """Wait until each has further records acknowledged.

    Raises:
        TimeoutError: one has not, in time.
        ProducerFailed: one has ended.
    """
    before = {one: one.acknowledged() for one in producers}
    deadline = time.monotonic() + _PROOF_SECONDS
    while waiting := [one for one in before if one.acknowledged() < before[one] + PROOF_RECORDS]:
        if time.monotonic() > deadline:
            topics = ", ".join(one.topic for one in waiting)
            raise TimeoutError(f"{topics}: not {PROOF_RECORDS} records within {_PROOF_SECONDS:g} s")
        time.sleep(0.5)


def _cycle(scene: Scene, states: AppliedStates, run: Run, faults: Cycle) -> None:
    volume = scene.stage.cluster.nodes[FULL_BROKER].volumes[0]
    ballast = volume.mount_point / "ballast"
    time.sleep(run.state_seconds / 2)
    for state, free_ratio in _FREE_RATIOS.items():
        with all_of(faults.at_changes, scene):
            ballast.unlink(missing_ok=True)
            volume.fill(int(free_ratio * volume.capacity_bytes()))
        states.wait_for(state)
        time.sleep(run.state_seconds / 2)
        for fault in faults.within.get(state, ()):
            with fault(scene):
                pass
            states.wait_for(state)
        time.sleep(run.state_seconds / 2)
    with all_of(faults.at_changes, scene):
        ballast.unlink()
    states.wait_for(State.OPEN)
    time.sleep(run.state_seconds / 2)
    scene.stage.check_agents()
