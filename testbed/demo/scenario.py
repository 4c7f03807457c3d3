"""The play itself: fill, throttle, pause, delete, go on; or fill and watch, without kquota."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Self

from confluent_kafka import KafkaException

from kquota.core.decision import State
from kquota.core.sentences import decision_sentence
from testbed.demo.aftermath import Aftermath, BrokerLog
from testbed.demo.load import Progress
from testbed.demo.load_process import LoadProcess
from testbed.demo.place import Place
from testbed.demo.screen import Screen
from testbed.demo.sight import Lookout, Sight
from testbed.demo.tally import Tally
from testbed.loopback import clients
from testbed.loopback.clients import PartitionHealth

# A small queue: records that wait in the client are neither lost nor counted, and a flush at the end is
# short. Five requests in flight, as Java producers have them, too. Not by idempotence: librdkafka (2.16.0)
# then keeps a core busy for each broker that holds it, and here these are the cores that brokers and agents
# run on.
_PRODUCER_SETTINGS = ("-X", "max.in.flight=5", "-X", "queue.buffering.max.kbytes=16384")
_TICK_SECONDS = 0.1
_PARTITIONS_SECONDS = 2.0


class PlayStuck(Exception):
    """The play could not go on; the message is a sentence."""


@dataclass
class Outcome:
    """The result of the scenario, in addition to the tally."""

    produced: Progress | None = None
    consumed: Progress | None = None
    landed_in_pause_bytes: int | None = None
    consumed_in_pause_bytes: int | None = None
    pause_seconds: float | None = None
    resumed_seconds: float | None = None
    """From every broker letting producers through to the first megabyte acknowledged."""
    flowing_bytes_per_second: float | None = None
    partitions: list[PartitionHealth] = field(default_factory=list)
    stuck: str | None = None
    aftermath: Aftermath = field(default_factory=lambda: Aftermath({}))
    """Without kquota: what the full disks did."""


class Scenario:
    """Plays on a stage, before the eyes of a lookout, and shows it on a screen."""

    def __init__(self, stage: Place, lookout: Lookout, tally: Tally, screen: Screen) -> None:
        self._stage = stage
        self._plan = stage.plan
        self._lookout = lookout
        self._tally = tally
        self._screen = screen
        self._admin = clients.admin_client(stage.cluster.administrator_configuration())
        self._loads = ExitStack()
        self._last_sentence = ""
        logs = {node.node_id: BrokerLog(node.log) for node in stage.cluster.brokers}
        self.outcome = Outcome(aftermath=Aftermath(logs))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._loads.close()

    def play(self) -> Outcome:
        """Run to the end, or to the point of failure; returns the observations until then."""
        try:
            if self._stage.protected:
                self._protected()
            else:
                self._unprotected()
        except PlayStuck as stuck:
            self.outcome.stuck = str(stuck)
            self._screen.event(str(stuck), "bold red")
        self._finish()
        return self.outcome

    def _protected(self) -> None:
        self._screen.event("producers wait until every broker enforces OPEN")
        self._until(lambda sight: sight.all_enforce(State.OPEN), "every broker to enforce OPEN")
        self._tally.begin()
        self._screen.event("three agents agree: OPEN. Producers start, flat out")
        self._start_load()
        timeout = self._plan.fill_timeout_seconds
        self._until(
            lambda sight: sight.all_enforce(State.THROTTLE), "every broker to enforce THROTTLE", timeout
        )
        self._until(lambda _: self._tally.paused_at is not None, "every broker to enforce PAUSE", timeout)
        self._watch_the_pause()
        self._screen.event(f"an operator deletes the records of {self._plan.topic}")
        ends = clients.offsets_by_partition(self._admin, self._plan.topic)
        clients.delete_records_before(self._admin, self._plan.topic, ends)
        self._until(lambda _: self._tally.opened_at is not None, "every broker to enforce OPEN again")
        self._watch_the_flow()

    def _watch_the_pause(self) -> None:
        self._screen.event("producers are held on all three brokers; consumers go on")
        begin_records, begin_at = self._landed_records(), time.monotonic()
        read_before = self._screen.consumed.load.latest if self._screen.consumed.load else None
        self._for(self._plan.pause_seconds)
        read_after = self._screen.consumed.load.latest if self._screen.consumed.load else None
        self.outcome.pause_seconds = time.monotonic() - begin_at
        self.outcome.landed_in_pause_bytes = (
            self._landed_records() - begin_records
        ) * self._plan.record_bytes
        if read_before and read_after:
            self.outcome.consumed_in_pause_bytes = read_after.bytes - read_before.bytes

    def _watch_the_flow(self) -> None:
        opened_at = self._tally.opened_at
        producer = self._screen.produced.load
        assert opened_at is not None
        assert producer is not None
        acknowledged = max((entry.bytes for entry in producer.history if entry.at <= opened_at), default=0)

        def first_megabyte() -> float | None:
            reports = producer.history
            return next((entry.at for entry in reports if entry.bytes >= acknowledged + 10**6), None)

        self._until(lambda _: first_megabyte() is not None, "producers to flow again")
        resumed_at = first_megabyte()
        assert resumed_at is not None
        self.outcome.resumed_seconds = max(0.0, resumed_at - opened_at)
        self._screen.event("producers flow again")
        self._for(self._plan.flow_seconds)
        self.outcome.flowing_bytes_per_second = producer.rate_bytes_per_second(self._plan.flow_seconds)

    def _unprotected(self) -> None:
        self._screen.event("nothing holds producers: they start, flat out")
        self._start_load()
        aftermath = self.outcome.aftermath

        def volume_full(sight: Sight) -> bool:
            self._tell(aftermath.notice(sight))
            return aftermath.first_full_at is not None

        self._until(volume_full, "a volume to be full", self._plan.fill_timeout_seconds)
        end = time.monotonic() + self._plan.aftermath_seconds
        next_look = 0.0
        while time.monotonic() < end and not (aftermath.dead_brokers and aftermath.leaderless):
            self._tick()
            self._tell(aftermath.notice(self._lookout.latest))
            if time.monotonic() >= next_look:
                self._look_at_partitions()
                self._tell(aftermath.notice_partitions(self.outcome.partitions))
                next_look = time.monotonic() + _PARTITIONS_SECONDS

    def _tell(self, news: list[str]) -> None:
        for text in news:
            self._screen.event(text, "bold red")

    def _start_load(self) -> None:
        plan, cluster = self._plan, self._stage.cluster
        clients.create_topic(self._admin, plan.topic, plan.replicas, plan.topic_settings)
        common = {
            "topic": plan.topic,
            "configuration": cluster.client_configuration(),
            "environment": cluster.environment(),
        }
        self._screen.produced.load = self._loads.enter_context(
            LoadProcess(
                "produce",
                log_path=cluster.path / "producer.log",
                options=[
                    *("--record-bytes", str(plan.record_bytes)),
                    *("--rate-bytes", str(plan.producer_bytes_per_second)),
                    *_PRODUCER_SETTINGS,
                ],
                **common,  # type: ignore[arg-type]
            )
        )
        self._screen.consumed.load = self._loads.enter_context(
            LoadProcess(
                "consume",
                log_path=cluster.path / "consumer.log",
                options=["--rate-bytes", str(plan.consumer_bytes_per_second)],
                **common,  # type: ignore[arg-type]
            )
        )

    def _finish(self) -> None:
        produced, consumed = self._screen.produced.load, self._screen.consumed.load
        self.outcome.produced = produced.latest if produced else None
        self.outcome.consumed = consumed.latest if consumed else None
        self._look_at_partitions()

    def _look_at_partitions(self) -> None:
        with suppress(KafkaException):  # no broker answers: the last observation stands
            self.outcome.partitions = clients.partition_health(self._admin, self._plan.topic)

    def _landed_records(self) -> int:
        return sum(clients.offsets_by_partition(self._admin, self._plan.topic).values())

    def _until(
        self, reached: Callable[[Sight], bool], what: str, timeout_seconds: float | None = None
    ) -> None:
        timeout = self._plan.step_timeout_seconds if timeout_seconds is None else timeout_seconds
        deadline = time.monotonic() + timeout
        while not reached(self._lookout.latest):
            if time.monotonic() > deadline:
                why = "".join(f"; {sentence}" for sentence in self._lookout.latest.lost_decisions)
                raise PlayStuck(f"waited {timeout:g} s in vain for {what}{why}")
            self._tick()
            if self._stage.protected and self._tally.died_at:
                raise PlayStuck(f"broker {min(self._tally.died_at)} went down while waiting for {what}")

    def _for(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._tick()

    def _tick(self) -> None:
        self._stage.check_agents()
        self._lookout.check()
        sight = self._lookout.latest
        if (decision := sight.worst_decision) is not None:
            sentence = decision_sentence(decision)
            # The factor moves all the time: only another state, or another cause of a PAUSE, is an event.
            key = decision.state.value if decision.state is State.THROTTLE else sentence
            if key != self._last_sentence:
                self._last_sentence = key
                self._screen.event(sentence)
        self._screen.show(sight)
        time.sleep(_TICK_SECONDS)
