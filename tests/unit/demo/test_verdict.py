"""The demo fails when a promise is broken."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.console import Console

from kquota.policy.decision import State
from testbed.demo.scenario import Outcome
from testbed.demo.tally import Peak, Tally
from testbed.demo.verdict import protected_promises, protected_verdict, ran_full, unprotected_verdict
from testbed.loopback.clients import PartitionHealth

TOPICS = ("orders", "payments")


def good_tally() -> Tally:
    return Tally(
        peaks={
            (3, "/dev/loop5"): Peak(
                capacity_bytes=500_000_000, hard_bytes=400_000_000, consumed_bytes=410_000_000
            )
        },
        states=[State.OPEN, State.THROTTLE, State.PAUSE, State.THROTTLE, State.OPEN],
        breached_at=1.0,
        paused_at=1.4,
        freed_at=9.0,
        opened_at=9.25,
    )


def good_outcome() -> Outcome:
    return Outcome(
        failed_records=0,
        landed_in_pause_bytes=0,
        other_rates=(2_000_000.0, 1_980_000.0),
        consumed_in_pause_bytes=96_000_000,
        pause_seconds=12.0,
        resumed_seconds=2.5,
        flowing_bytes_per_second=2e7,
        partitions=[PartitionHealth("orders", 0, leader=1, replicas=(1, 3), in_sync=(1, 3))],
    )


def text_of(verdict: object) -> str:
    console = Console(width=80, force_terminal=False)
    with console.capture() as capture:
        console.print(verdict)
    return capture.get()


def test_a_good_run_keeps_every_promise_and_says_so_in_80_columns() -> None:
    tally, outcome = good_tally(), good_outcome()
    promises = protected_promises(tally, outcome, broker_count=3, topics=TOPICS)

    text = text_of(protected_verdict(tally, outcome, promises))

    assert all(promise.kept for promise in promises)
    assert "The promise was kept." in text
    assert "0.40 s" in text
    assert "0.25 s" in text
    assert "10.0M" in text
    assert "OPEN THROTTLE PAUSE THROTTLE OPEN" in text
    assert max(len(line) for line in text.splitlines()) <= 80
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "kept nothing is written to orders in PAUSE 0B in 12 s" in rows
    assert "kept payments keeps its rate in PAUSE 1.98MB/s, 99% of 2.00MB/s" in rows


@pytest.mark.parametrize(("unread_bytes", "kept"), [(0, True), (1, False), (None, False)])
def test_a_consumer_that_has_read_everything_goes_on_reading(unread_bytes: int | None, kept: bool) -> None:
    outcome = good_outcome()
    outcome.consumed_in_pause_bytes, outcome.unread_bytes = 0, unread_bytes
    promises = protected_promises(good_tally(), outcome, broker_count=3, topics=TOPICS)
    (reading,) = (each for each in promises if each.text == "consumers go on reading in PAUSE")
    assert reading.kept is kept
    assert reading.seen == ("0B, all is read" if kept else "0B")


def lose_a_broker(tally: Tally, _outcome: Outcome) -> None:
    tally.died_at[3] = 2.0


def lose_a_log_dir(tally: Tally, _outcome: Outcome) -> None:
    tally.offline_log_dirs.add((3, "/data/1"))


def run_full(tally: Tally, _outcome: Outcome) -> None:
    peak = tally.peaks[(3, "/dev/loop5")]
    peak.consumed_bytes = peak.capacity_bytes


def never_pause(tally: Tally, _outcome: Outcome) -> None:
    tally.states = [State.OPEN, State.THROTTLE, State.OPEN]


def never_open_again(tally: Tally, _outcome: Outcome) -> None:
    tally.states = [State.OPEN, State.THROTTLE, State.PAUSE]


def hold_consumers(_tally: Tally, outcome: Outcome) -> None:
    outcome.consumed_in_pause_bytes = 0


def lose_records(_tally: Tally, outcome: Outcome) -> None:
    outcome.failed_records = 1


def start_no_producer(_tally: Tally, outcome: Outcome) -> None:
    outcome.failed_records = None


def let_something_through(_tally: Tally, outcome: Outcome) -> None:
    outcome.landed_in_pause_bytes = 10_000


def hold_the_other_application(_tally: Tally, outcome: Outcome) -> None:
    outcome.other_rates = (2_000_000.0, 1_780_000.0)


def not_look_at_the_other_application(_tally: Tally, outcome: Outcome) -> None:
    outcome.other_rates = None


def hold_it_from_the_start(_tally: Tally, outcome: Outcome) -> None:
    outcome.other_rates = (0.0, 0.0)


def resume_late(_tally: Tally, outcome: Outcome) -> None:
    outcome.resumed_seconds = 60.0


def lag_behind(_tally: Tally, outcome: Outcome) -> None:
    outcome.partitions = [PartitionHealth("orders", 0, leader=1, replicas=(1, 3), in_sync=(1,))]


@pytest.mark.parametrize(
    "harm",
    [
        lose_a_broker,
        lose_a_log_dir,
        run_full,
        never_pause,
        never_open_again,
        hold_consumers,
        lose_records,
        start_no_producer,
        let_something_through,
        hold_the_other_application,
        not_look_at_the_other_application,
        hold_it_from_the_start,
        resume_late,
        lag_behind,
    ],
)
def test_each_harm_breaks_one_promise(harm: Callable[[Tally, Outcome], None]) -> None:
    tally, outcome = good_tally(), good_outcome()
    harm(tally, outcome)

    promises = protected_promises(tally, outcome, broker_count=3, topics=TOPICS)

    assert [promise.kept for promise in promises].count(False) == 1
    assert "NOT KEPT" in text_of(protected_verdict(tally, outcome, promises))


def test_a_play_that_got_stuck_keeps_nothing() -> None:
    outcome = Outcome(stuck="waited 60 s in vain for every broker to enforce OPEN")

    text = text_of(
        protected_verdict(
            Tally(), outcome, protected_promises(Tally(), outcome, broker_count=3, topics=TOPICS)
        )
    )

    assert "NOT KEPT" in text
    assert "in vain" in text


def test_without_kquota_the_end_is_told_in_numbers() -> None:
    tally, outcome = good_tally(), good_outcome()
    assert not ran_full(outcome)
    aftermath = outcome.aftermath
    aftermath.full_volumes.add("/dev/loop5")
    aftermath.offline_log_dirs.add((3, "/data/1"))
    aftermath.dead_brokers.add(3)
    aftermath.first_full_at = 4.0
    outcome.partitions = [PartitionHealth("orders", 0, leader=None, replicas=(1, 3), in_sync=(1,))]

    text = text_of(unprotected_verdict(tally, outcome, broker_count=3))

    assert ran_full(outcome)
    assert "3.00 s" in text
    assert "2 of 3" in text
    assert "the disks ran full" in text
