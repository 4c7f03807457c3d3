"""One trial: a volume fills, producers are held or not, space is made, and every record is accounted for."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from tenacity import RetryError

from bench.ledger.audit import Account, Promise, audit
from bench.ledger.producers import LedgerProducer, compiled
from bench.ledger.reader import Unread, read_all
from conformance.course import RESUMED_MEAN_SECONDS, RESUMED_RATIO, Course, acknowledged_to, consumed
from conformance.figures import MIB, Crossed, Fill, Survival
from conformance.log_dirs import lost_log_dirs
from conformance.plan import FILLING, FULL_BROKER, OTHERS, Plan
from conformance.recovery import Health, Recovered, recover
from conformance.system import Place, Report, System
from conformance.watch import PacedConsumer, Watch, left_bytes
from testbed.loopback.clients import admin_client, create_topic

_LOOK_SECONDS = 0.05
_PROOF_RECORDS = 50
_BALLAST, _LAST_FILE = "ballast", "last-file"
_OWN_COLUMNS = {"lost", "doubled"}


class TrialFailed(Exception):
    """The trial itself did not come about: producers did not write before the fill, or no fill."""


@dataclass(frozen=True, slots=True)
class Moments:
    """When what began (CLOCK_MONOTONIC, in seconds), and the state at the end of the hold."""

    before: float
    approach: float
    crossed: float
    held_until: float
    freed: float
    crossed_by: Crossed
    log_dirs_lost: int


@dataclass(frozen=True, slots=True)
class Audited:
    """The records of one producer."""

    acknowledged: int
    given_up: int
    account: Account | None
    """None: its topic could not be read to the end."""


def run(system: System, fill: Fill, plan: Plan, report: Report) -> Survival:
    """Try one system with one fill.

    Raises:
        TrialFailed: nothing was written, or the volume did not fill.
    """
    began_at = time.monotonic()

    def timed(line: str) -> None:
        report(f"  {time.monotonic() - began_at:4.0f} s  {line}")

    with system.running(plan.volumes(fill), plan.limits, timed) as place:
        return _Trial(system, fill, plan, place, timed).run()


class _Trial:
    def __init__(self, system: System, fill: Fill, plan: Plan, place: Place, report: Report) -> None:
        self._system, self._fill, self._plan, self._place, self._report = system, fill, plan, place, report
        self._volume = place.brokers[FULL_BROKER].volumes[-1]
        self._topics = [load.topic for load in plan.loads]
        self._filling = [index for index, load in enumerate(plan.loads) if load.role == FILLING]
        self._others = [index for index, load in enumerate(plan.loads) if load.role == OTHERS]
        self._health = Health(place, self._topics)

    def run(self) -> Survival:
        """Go through all steps."""
        plan, place = self._plan, self._place
        producers = self._start_producers()
        with ExitStack() as stack:
            filled = [self._topics[index] for index in self._filling]
            consumer = stack.enter_context(
                PacedConsumer(place.bootstrap_servers, filled, plan.consumer_bytes_per_second)
            )
            books = [producer.path for producer in producers]
            watch = stack.enter_context(Watch(self._volume, books, plan.record_bytes, consumer))
            moments = self._fill_and_free(watch)
            rates = [
                watch.course.rate(acknowledged_to([index]), moments.before, moments.approach)
                for index in range(len(producers))
            ]
            recovered = recover(place, self._health, plan, lambda: self._behind(watch, rates), self._report)
            # The slowest producer's mean over the seconds after its return has to be seen, too.
            time.sleep(RESUMED_MEAN_SECONDS)
            course = watch.course
        return self._survival(course, moments, rates, recovered, self._audit(producers))

    def _start_producers(self) -> list[LedgerProducer]:
        plan, place = self._plan, self._place
        admin = admin_client({"bootstrap.servers": place.bootstrap_servers})
        for load in plan.loads:
            create_topic(admin, load.topic, plan.replicas(load, self._fill))
        java = compiled(self._system.runtime, place.path)
        self._report("producers start: " + ", ".join(self._topics))
        return [
            LedgerProducer(
                load.kind,
                place,
                java,
                load.rate_bytes,
                {},
                topic=load.topic,
                partitions=len(plan.replicas(load, self._fill)),
                record_bytes=plan.record_bytes,
            )
            for load in plan.loads
        ]

    def _fill_and_free(self, watch: Watch) -> Moments:
        plan, limits = self._plan, self._plan.limits
        self._wait_for_records(watch)
        time.sleep(plan.warm_seconds)
        before = time.monotonic()
        time.sleep(plan.before_seconds)
        approach = time.monotonic()
        leave_bytes = limits.soft_left_bytes + plan.approach_bytes
        _allocate(self._volume / _BALLAST, left_bytes(self._volume) - leave_bytes)
        self._report(f"everything flows; the suite leaves {leave_bytes // MIB} MiB on the volume")
        crossed, crossed_by = self._cross(watch, approach)
        self._report(f"the volume is over its hard limit, by {crossed_by.value}")
        known_down: set[int] = set()
        while time.monotonic() < crossed + plan.hold_seconds:
            if news := self._health.down() - known_down:
                known_down |= news
                self._report(f"broker {', '.join(map(str, sorted(news)))} is down")
            time.sleep(_LOOK_SECONDS)
        held_until = time.monotonic()
        log_dirs_lost = lost_log_dirs(self._place, self._system.runtime, self._report)
        freed = time.monotonic()
        for name in (_BALLAST, _LAST_FILE):
            (self._volume / name).unlink(missing_ok=True)
        self._report(f"there is space again; lost: {len(known_down)} brokers, {log_dirs_lost} log dirs")
        return Moments(before, approach, crossed, held_until, freed, crossed_by, log_dirs_lost)

    def _wait_for_records(self, watch: Watch) -> None:
        deadline = time.monotonic() + self._plan.flowing_seconds
        while watch.fewest_records() < _PROOF_RECORDS:
            if time.monotonic() > deadline:
                raise TrialFailed(f"not every producer wrote within {self._plan.flowing_seconds:.0f} s")
            time.sleep(_LOOK_SECONDS)

    def _cross(self, watch: Watch, since: float) -> tuple[float, Crossed]:
        """Wait until the volume is over its hard limit; a file helps if producers are slowed before."""
        plan, limits = self._plan, self._plan.limits
        crossed_by = Crossed.PRODUCERS
        while time.monotonic() < since + plan.crossing_seconds:
            course = watch.course
            if (crossed := course.passed_at(limits.hard_left_bytes, since)) is not None:
                return crossed, crossed_by
            slowed = course.passed_at(limits.soft_left_bytes, since)
            is_late = slowed is not None and time.monotonic() > slowed + plan.slowed_seconds
            if crossed_by is Crossed.PRODUCERS and is_late:
                beyond_bytes = left_bytes(self._volume) - limits.hard_left_bytes + MIB
                _allocate(self._volume / _LAST_FILE, beyond_bytes)
                crossed_by = Crossed.SUITE
            time.sleep(_LOOK_SECONDS)
        raise TrialFailed(f"the volume did not fill within {plan.crossing_seconds:.0f} s")

    def _behind(self, watch: Watch, rates: Sequence[float]) -> list[str]:
        """Return the producers without their share of the rate before, over the last seconds, with theirs."""
        now = time.monotonic()
        since, course = now - 1.5 * RESUMED_MEAN_SECONDS, watch.course
        shares = [
            course.rate(acknowledged_to([index]), since, now) / max(1.0, rate)
            for index, rate in enumerate(rates)
        ]
        return [
            f"{topic} at {100 * share:.0f} %"
            for topic, share in zip(self._topics, shares, strict=True)
            if share < RESUMED_RATIO
        ]

    def _audit(self, producers: Sequence[LedgerProducer]) -> list[Audited]:
        self._report("producers end, and every record is read back")
        for producer in producers:
            producer.ask_to_stop()
        deadline = time.monotonic() + self._plan.end_seconds
        audited = []
        for producer, load in zip(producers, self._plan.loads, strict=True):
            book = producer.ended(max(0.1, deadline - time.monotonic()))
            account = None
            try:
                partitions = len(self._plan.replicas(load, self._fill))
                configuration = {"bootstrap.servers": self._place.bootstrap_servers}
                account = audit(load.topic, book, read_all(configuration, load.topic, partitions))
            except (Unread, KafkaException, RetryError, TimeoutError) as error:
                self._report(f"{load.topic} can't be read: {error}")
            audited.append(Audited(len(book.acknowledged), len(book.given_up), account))
        return audited

    def _survival(
        self,
        course: Course,
        moments: Moments,
        rates: Sequence[float],
        recovered: Recovered,
        audited: Sequence[Audited],
    ) -> Survival:
        plan = self._plan
        filling, others = acknowledged_to(self._filling), acknowledged_to(self._others)
        before, hold = (moments.before, moments.approach), (moments.crossed, moments.held_until)
        rate_before = course.rate(filling, *before)
        accounts = [one.account for one in audited if one.account is not None]
        is_read = len(accounts) == len(audited)
        breaches: Counter[str] = Counter()
        for account in accounts:
            breaches.update(account.broken(Promise.EXACTLY_ONCE))
        return Survival(
            system=self._system.name,
            fill=self._fill,
            crossed_by=moments.crossed_by,
            brokers_lost=tuple(sorted(recovered.down)),
            log_dirs_lost=moments.log_dirs_lost,
            acknowledged=sum(one.acknowledged for one in audited),
            lost=sum(account.lost for account in accounts) if is_read else None,
            doubled=sum(account.doubled for account in accounts) if is_read else None,
            other_breaches={name: count for name, count in breaches.items() if name not in _OWN_COLUMNS},
            given_up=sum(one.given_up for one in audited),
            held_seconds=course.held_seconds(filling, *hold, rate_before),
            hold_bound_seconds=plan.hold_seconds,
            overshoot_bytes=course.overshoot_bytes(
                plan.limits.hard_left_bytes, moments.crossed, moments.freed
            ),
            hard_left_bytes=plan.limits.hard_left_bytes,
            resumed_seconds=course.resumed_seconds(
                [(acknowledged_to([index]), rates[index]) for index in self._filling],
                moments.freed,
                moments.freed + recovered.by_itself_bound_seconds,
            ),
            whole_seconds=recovered.whole_seconds,
            recovery_bound_seconds=recovered.by_itself_bound_seconds,
            recovery=recovered.needed,
            collateral_share=course.share(others, before, hold),
            consumer_share=course.share(consumed, before, hold),
            rate_before=rate_before,
            offered_rate=plan.offered_rate,
        )


def _allocate(file: Path, size_bytes: int) -> None:
    """Take space on a volume at once, without writing it."""
    with file.open("wb") as opened:
        os.posix_fallocate(opened.fileno(), 0, size_bytes)
