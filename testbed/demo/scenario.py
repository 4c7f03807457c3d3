"""The play itself: fill, throttle, pause, delete, go on; or fill and watch, without kquota."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Self

from confluent_kafka import KafkaException

from kquota.formats.sentences import decision_sentence
from kquota.policy.decision import State
from testbed.demo.aftermath import Aftermath, BrokerLog
from testbed.demo.application import RunningApplication
from testbed.demo.place import Place
from testbed.demo.screen import Screen
from testbed.demo.sight import Lookout, Sight
from testbed.demo.tally import Tally
from testbed.loopback import clients
from testbed.loopback.clients import PartitionHealth

_TICK_SECONDS = 0.1
_PARTITIONS_SECONDS = 2.0


class PlayStuck(Exception):
    """The play could not go on; the message is a sentence."""


@dataclass
class Outcome:
    """The result of the scenario, in addition to the tally."""

    failed_records: int | None = None
    """Given up by any producer; None before they start."""
    landed_in_pause_bytes: int | None = None
    consumed_in_pause_bytes: int | None = None
    unread_bytes: int | None = None
    """Landed, and not yet consumed at the end of the PAUSE: 0 for a fast consumer."""
    other_rates: tuple[float, float] | None = None
    """Of the second application's producer, in bytes per second: before the first THROTTLE, and in PAUSE."""
    pause_seconds: float | None = None
    """How long `landed_in_pause_bytes` and the others of a PAUSE were counted."""
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
        admin = clients.admin_client(stage.cluster.administrator_configuration())
        self._applications = [
            RunningApplication(application, stage.cluster, admin) for application in stage.plan.applications
        ]
        self._filling, self._other = self._applications
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
        self._screen.event(f"three agents agree: OPEN. Producers start, {self._filling.topic} flat out")
        self._start_load()
        timeout = self._plan.fill_timeout_seconds
        self._until(
            lambda sight: sight.all_enforce(State.THROTTLE), "every broker to enforce THROTTLE", timeout
        )
        rate_before = self._other.produced.rate_bytes_per_second(math.inf)
        self._for(self._plan.throttle_seconds)
        if self._tally.paused_at is None:
            self._write_as_another_program()
        self._until(lambda _: self._tally.paused_at is not None, "every broker to enforce PAUSE")
        self.outcome.other_rates = rate_before, self._watch_the_pause()
        self._screen.event(f"an operator deletes the records of {self._filling.topic}")
        self._filling.delete_records()
        self._until(lambda _: self._tally.opened_at is not None, "every broker to enforce OPEN again")
        self._watch_the_flow()

    def _write_as_another_program(self) -> None:
        """Take the fullest volume over its hard limit, which throttled producers only approach."""
        broker_id, fullest = min(self._lookout.latest.volumes, key=lambda seen: seen[1].headroom)
        (volume,) = (
            each
            for broker in self._stage.cluster.brokers
            for each in broker.volumes
            if broker.node_id == broker_id and each.device == fullest.name
        )
        self._screen.event(f"another program writes to {fullest.name} of broker {broker_id}")
        past_hard_bytes = int(fullest.capacity_bytes * self._plan.past_hard_ratio)
        volume.fill(leave_bytes=fullest.capacity_bytes - fullest.hard_bytes - past_hard_bytes)

    def _watch_the_pause(self) -> float:
        """Return the rate of the second application's producer meanwhile, in bytes per second."""
        filling, other = self._plan.topics
        self._screen.event(f"all brokers hold producers of {filling}; consumers and {other} go on")
        self._for(self._plan.settle_seconds)
        begin_bytes, begin_at = self._filling.landed_bytes(), time.monotonic()
        read_before = self._filling.consumed.latest
        self._for(self._plan.pause_seconds)
        read_after = self._filling.consumed.latest
        self.outcome.pause_seconds = time.monotonic() - begin_at
        landed_bytes = self._filling.landed_bytes()
        self.outcome.landed_in_pause_bytes = landed_bytes - begin_bytes
        if read_before and read_after:
            self.outcome.consumed_in_pause_bytes = read_after.bytes - read_before.bytes
            self.outcome.unread_bytes = max(0, landed_bytes - read_after.bytes)
        return self._other.produced.rate_bytes_per_second(self.outcome.pause_seconds)

    def _watch_the_flow(self) -> None:
        opened_at = self._tally.opened_at
        producer = self._filling.produced
        assert opened_at is not None
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
        meters = zip(self._applications, self._screen.produced, self._screen.consumed, strict=True)
        for application, produced, consumed in meters:
            self._loads.enter_context(application)
            produced.load, consumed.load = application.produced, application.consumed

    def _finish(self) -> None:
        reports = [meter.load.latest for meter in self._screen.produced if meter.load]
        if reports:
            self.outcome.failed_records = sum(report.failed_records for report in reports if report)
        self._look_at_partitions()

    def _look_at_partitions(self) -> None:
        with suppress(KafkaException):  # no broker answers: the last observation stands
            self.outcome.partitions = [
                partition for application in self._applications for partition in application.partitions()
            ]

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
